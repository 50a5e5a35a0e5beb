"""The layers of a model, as transformers saves them: three tensors each, of which the file tells neither rows nor columns."""
import json
import os
import random
import struct
import unittest

from support import CliTest


def layer_of(draw):
    """A random block-sparse layer: its sizes, its tensors, and what it is as a dense matrix."""
    block = draw.choice((1, 2, 3, 8)), draw.choice((1, 2, 4, 16))
    rows, cols = draw.randint(1, 40), draw.randint(1, 60)
    down, across = -(-rows // block[0]), -(-cols // block[1])
    offsets, columns, values = [0], [], []
    dense = [[0.0] * cols for _ in range(rows)]
    for i in range(down):
        for j in range(across):
            if draw.random() < 0.4 or (i, j) == (down - 1, 0):
                columns.append(j)
                for y in range(block[0]):
                    for x in range(block[1]):
                        inside = i * block[0] + y < rows and j * block[1] + x < cols
                        values.append(float(draw.randint(1, 99)) if inside else 0.0)
                        if inside:
                            dense[i * block[0] + y][j * block[1] + x] = values[-1]
        offsets.append(len(columns))
    tensors = {"values": ("F32", [len(columns), *block], struct.pack(f"<{len(values)}f", *values)),
               "row_offsets": ("I32", [len(offsets)], struct.pack(f"<{len(offsets)}i", *offsets)),
               "col_indices": ("I32", [len(columns)], struct.pack(f"<{len(columns)}i", *columns))}
    facts = {"in_features": cols, "out_features": rows, "block": list(block), "blocks": len(columns), "bias": True, "activation": None}
    return facts, tensors, dense, max(columns)


class Models(CliTest):
    def write_tensors(self, name, tensors):
        header, data = {"__metadata__": {"format": "pt"}}, b""
        for key, (dtype, shape, payload) in tensors.items():
            header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(payload)]}
            data += payload
        text = json.dumps(header).encode()
        (self.folder / name).write_bytes(struct.pack("<Q", len(text)) + text + data)

    def write_config(self, layers, method="sparse_autotune"):
        (self.folder / "config.json").write_text(json.dumps({"model_type": "llama", "quantization_config": {"loader" if method == "sparse_autotune" and len(layers) % 2 else "quant_method": method, "layers": layers}}))

    def make(self, seed, count=3):
        """{name: (facts, tensors, dense, last)} of a model, and all its tensors."""
        draw = random.Random(seed)
        layers = {f"model.layers.{i}.mlp.{draw.choice(('up', 'down'))}_proj": layer_of(draw) for i in range(count)}
        tensors = {f"{name}.{part}": tensor for name, layer in layers.items() for part, tensor in layer[1].items()}
        tensors |= {f"{name}.bias": ("F32", [1], struct.pack("<f", 1)) for name in layers}
        items = list(tensors.items())
        draw.shuffle(items)
        return layers, dict(items)

    def dense_of(self, file, *options, **others):
        self.cli("convert", file, "out.mtx", "--to", "dense", *options, **others)
        return self.read_array(self.path("out.mtx"))

    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("SEED") or random.randrange(10**6))
        print(f"SEED={self.seed}", end=" ", flush=True)
        self.draw = random.Random(self.seed)
        self.layers, self.tensors = self.make(self.seed)

    def test_layers_by_config(self):
        self.write_tensors("model.safetensors", self.tensors)
        self.write_config({name: layer[0] for name, layer in self.layers.items()})
        for name, (facts, _, dense, _) in self.layers.items():
            with self.subTest(name=name):
                self.assertEqual(self.dense_of("model.safetensors", "--tensor", name), dense)
                text = self.json("inspect", "model.safetensors", "--tensor", name)["results"][0]
                self.assertIn(f"BSR {facts['out_features']} x {facts['in_features']} f32, {facts['blocks']} block", text["format"])
                p = self.json("tune", "model.safetensors", "--tensor", name, "--n", "4", "--budget", "0.05")["results"][0]["problem"]
                self.assertEqual((p["m"], p["k"], p["nnzb"]), (facts["out_features"], facts["in_features"], facts["blocks"]))
                self.assertIn("cols", self.cli("inspect", "model.safetensors", "--tensor", name, "--cols", str(facts["in_features"] + 1), code=3).stderr)

    def test_names_are_those_of_layers(self):
        self.write_tensors("model.safetensors", self.tensors)
        error = self.cli("inspect", "model.safetensors", code=3).stderr
        for name in self.layers:
            self.assertIn(f"'{name}'", error)
        self.assertNotIn("col_indices", error)
        self.assertNotIn(".values'", error)
        self.assertIn("holds no tensor 'layers.1'", self.cli("inspect", "model.safetensors", "--tensor", "layers.1", code=3).stderr)

    def test_layers_without_config(self):
        self.write_tensors("model.safetensors", self.tensors)
        for name, (facts, _, dense, last) in self.layers.items():
            with self.subTest(name=name):
                high, wide = facts["block"]
                padded = [[*row, *[0.0] * (-len(row) % wide)] for row in dense]
                padded += [[0.0] * len(padded[0])] * (-len(dense) % high)
                whole = len(padded[0])
                self.assertEqual(self.dense_of("model.safetensors", "--tensor", name, "--cols", str(whole)), padded)
                done = self.cli("inspect", "model.safetensors", "--tensor", name)
                self.assertIn(f"nothing says how many columns the BSR matrix '{name[:40]}", done.stderr)
                self.assertIn(f" x {(last + 1) * wide} f32", done.stdout)
                if last:
                    self.assertIn("no such block column", self.cli("inspect", "model.safetensors", "--tensor", name, "--cols", str(last * wide), code=3).stderr)
                bench = self.json("bench", "model.safetensors", "--tensor", name, "--cols", str(whole), "--n", "4", "--budget", "0.05")
                self.assertEqual(bench["results"][0]["problem"]["cols"], whole)
                (self.folder / "b.json").write_text(json.dumps(bench))
                self.assertEqual(self.json("tune", "--from", "b.json", "--budget", "0.05")["results"][0]["problem"]["k"], whole)

    def test_run(self):
        self.write_tensors("model.safetensors", self.tensors)
        self.write_config({name: layer[0] for name, layer in self.layers.items()})
        name, (facts, _, dense, _) = self.draw.choice(list(self.layers.items()))
        self.cli("gen", "uniform", "--rows", str(facts["in_features"]), "--cols", "3", "--block", "1", "--density", "1", "-o", "b.mtx")
        b = self.read_array(self.path("b.mtx"))
        self.cli("compute", "model.safetensors", "b.mtx", "--tensor-a", name, "-o", "d.mtx", "--budget", "0.05")
        d = self.read_array(self.path("d.mtx"))
        for i, row in enumerate(dense):
            for j in range(3):
                self.assertAlmostEqual(d[i][j], sum(x * b[k][j] for k, x in enumerate(row)), delta=1e-4 * sum(map(abs, row)) + 1e-6)

    def test_several_files(self):
        files = [f"model-0000{i + 1}-of-00003.safetensors" for i in range(3)]
        place = {name: self.draw.choice(files) for name in self.layers}
        owner = lambda tensor: place[tensor.rpartition(".")[0]]
        for file in files:
            self.write_tensors(file, {key: value for key, value in self.tensors.items() if owner(key) == file})
        index = {"metadata": {"total_size": 1}, "weight_map": {key: owner(key) for key in self.tensors}}
        (self.folder / "model.safetensors.index.json").write_text(json.dumps(index))
        self.write_config({name: layer[0] for name, layer in self.layers.items()})
        for name, (_, _, dense, _) in self.layers.items():
            self.assertEqual(self.dense_of("model.safetensors.index.json", "--tensor", name), dense)
        self.assertEqual(self.dense_of("model.safetensors.index.json", "--tensor", name + ".bias"), [[1.0]])
        error = self.cli("inspect", "model.safetensors.index.json", code=3).stderr
        for name in self.layers:
            self.assertIn(f"'{name}'", error)
        self.assertNotIn("row_offsets", error)

    def test_one_layer_in_several_files(self):
        """The only matrix needs no name, as in one file; nor does the only tensor."""
        name, (_, _, dense, _) = self.draw.choice(list(self.layers.items()))
        layer = {key: value for key, value in self.tensors.items() if key.rpartition(".")[0] == name}
        for tensors, wanted in ((layer, dense), ({key: value for key, value in layer.items() if key.endswith(".bias")}, [[1.0]])):
            self.write_tensors("part.safetensors", self.tensors)
            (self.folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {key: "part.safetensors" for key in tensors}}))
            self.write_config({name: layer[0] for name, layer in self.layers.items()})
            self.assertEqual(self.dense_of("model.safetensors.index.json"), wanted)

    def test_bad_indices_of_files(self):
        name = next(iter(self.layers))
        self.write_tensors("part.safetensors", self.tensors)
        whole = {key: "part.safetensors" for key in self.tensors}
        cases = [({"weight_map": whole | {f"{name}.values": "other.safetensors"}}, "lie in several files"),
                 ({"weight_map": {key: "../part.safetensors" for key in whole}}, "is no .safetensors beside it"),
                 ({"weight_map": {key: "model.safetensors.index.json" for key in whole}}, "is no .safetensors beside it"),
                 ({"weight_map": {key: 7 for key in whole}}, "is no .safetensors beside it"),
                 ({"weight_map": {key: "gone.safetensors" for key in whole}}, "gone.safetensors"),
                 ({"weight_map": {}}, "holds no tensor"), ({"weight_map": []}, 'has no "weight_map"'), ([], 'has no "weight_map"'), ("{", "is not JSON")]
        for index, why in cases:
            with self.subTest(why=why, index=str(index)[:60]):
                (self.folder / "model.safetensors.index.json").write_text(index if isinstance(index, str) else json.dumps(index))
                self.assertIn(why, self.cli("inspect", "model.safetensors.index.json", "--tensor", name, code=3).stderr)

    def test_bad_configs(self):
        """What does not go with the tensors is refused; what tells nothing of the layer is passed over."""
        self.write_tensors("model.safetensors", self.tensors)
        name, (facts, _, _, last) = next(iter(self.layers.items()))
        wrong = [{"block": [facts["block"][0] + 1, facts["block"][1]]}, {"block": 8}, {"out_features": facts["out_features"] + facts["block"][0]},
                 {"out_features": -1}, {"out_features": 1 << 62}, {"in_features": "64"}, {"in_features": 1 << 60}, {"in_features": None}]
        if last:
            wrong.append({"in_features": last * facts["block"][1]})
        for change in wrong:
            with self.subTest(change=change):
                self.write_config({name: facts | change})
                error = self.cli("inspect", "model.safetensors", "--tensor", name, code=3).stderr
                self.assertRegex(error, "another than config.json beside it describes|no such block column")
        for change, why in (({"transposed": True}, "'transposed'"), ({"scale": None}, "'scale'"), ({"In_features": 64}, "'In_features'")):
            with self.subTest(change=change):
                self.write_config({name: facts | change})
                error = self.cli("inspect", "model.safetensors", "--tensor", name, code=3).stderr
                self.assertIn(f"has {why} in config.json beside it, which is not known", error)
        for change, why in (({"scale": 2}, "has 'scale' in config.json"), ({"load_in_4bit": True}, "has 'load_in_4bit' in config.json"),
                            ({"quant_method": "other", "loader": "sparse_autotune"}, "loader and quant_method differ"),
                            ({"quant_method": "sparse_autotune", "loader": None}, "loader and quant_method differ")):
            with self.subTest(change=change):
                told = {"loader": "sparse_autotune", "needs": "words", "layers": {name: facts}} | change
                (self.folder / "config.json").write_text(json.dumps({"quantization_config": told}))
                self.assertIn(why, self.cli("inspect", "model.safetensors", "--tensor", name, code=3).stderr)
        for text in ("[]", "{}", '{"quantization_config": 3}', '{"quantization_config": {"quant_method": "sparse_autotune", "layers": []}}'):
            (self.folder / "config.json").write_text(text)
            self.assertIn("nothing says how many columns", self.cli("inspect", "model.safetensors", "--tensor", name).stderr)
        self.write_config({name: facts | {"in_features": 1}}, method="other")
        self.assertIn("nothing says how many columns", self.cli("inspect", "model.safetensors", "--tensor", name).stderr)
        (self.folder / "config.json").write_text("{" * 1000)
        self.assertIn("nothing says how many columns", self.cli("inspect", "model.safetensors", "--tensor", name).stderr)


if __name__ == "__main__":
    unittest.main()
