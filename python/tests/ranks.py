"""Processes that stay, over gloo: each call runs a function in all of them, within a hard time limit."""

import datetime
import multiprocessing
import os
import sys
import tempfile
import traceback

LIMIT_S = 600


def _serve(rank, size, folder, pipe):
    import torch
    import torch.distributed as dist

    import sparse_autotune as sa

    torch.set_num_threads(1)
    os.environ.pop("MASTER_ADDR", None)
    sa.set_options(store=os.path.join(folder, f"store{rank}.db"), effort="estimate")
    store = dist.FileStore(os.path.join(folder, "rendezvous"), size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=datetime.timedelta(seconds=300))
    while True:
        function, arguments = pipe.recv()
        if function is None:
            break
        try:
            torch.manual_seed(20)
            pipe.send((True, function(rank, size, *arguments)))
        except BaseException:  # noqa: BLE001
            pipe.send((False, traceback.format_exc()))
    dist.destroy_process_group()


class World:
    """size processes; what one of them raises fails the call, and one that does not answer in time ends them all."""

    def __init__(self, size):
        context = multiprocessing.get_context("spawn")
        self.folder = tempfile.TemporaryDirectory()
        self.pipes, self.processes = [], []
        for rank in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(rank, size, self.folder.name, theirs), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def run(self, function, *arguments, limit_s=LIMIT_S, only_living=False):
        """What it gives at each rank. only_living: None for a process that died, and what it raised for others."""
        end = datetime.datetime.now() + datetime.timedelta(seconds=limit_s)
        for pipe in self.pipes:
            pipe.send((function, arguments))
        answers, wrong = [], []
        for rank, pipe in enumerate(self.pipes):
            try:
                if not pipe.poll(max(0.1, (end - datetime.datetime.now()).total_seconds())):
                    self.kill()
                    raise TimeoutError(f"rank {rank} gave no answer within {limit_s} s; {wrong}")
                fine, answer = pipe.recv()
            except EOFError:
                fine, answer = only_living, None
            answers.append(answer)
            if not fine:
                wrong.append(f"rank {rank}: {answer}")
        if wrong and not only_living:
            raise AssertionError("\n".join(wrong))
        return answers

    def kill(self):
        for process in self.processes:
            process.kill()

    def close(self):
        for pipe in self.pipes:
            try:
                pipe.send((None, ()))
            except OSError:
                pass
        for process in self.processes:
            process.join(5)
        self.kill()
        self.folder.cleanup()


class Worlds(dict):
    """By their size, made when they are asked for."""

    def __missing__(self, size):
        self[size] = World(size)
        return self[size]

    def close(self):
        for world in self.values():
            world.close()


sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # the processes look here for functions
