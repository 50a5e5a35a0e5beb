"""One case from its data to its result."""
from race.contestants import CONTESTANTS, Trial
from race.harness import Harness
from race.operations import OPERATIONS
from race.report import result_of


class Wrong(RuntimeError):
    pass


def attempt(harness, skipped, name, make):
    """Adds a contestant; one that refuses or is wrong is a result, too, and does not end the race."""
    torch = harness.torch
    try:
        run, facts = make()
        result, operands = facts.pop("result", None), facts.pop("operands")
        if result is not None:
            operands.clear()
            run(0)
            torch.cuda.synchronize()
            facts.update(error=operands.error(result()), tolerance=operands.tolerance())
            if not facts["error"] <= facts["tolerance"]:
                raise Wrong(f"its error is {facts['error']:.3g}, more than {facts['tolerance']:g}")
        harness.add(name, run, **facts)
    except Exception as problem:
        torch.cuda.synchronize()
        skipped[name] = f"{type(problem).__name__}: {str(problem).splitlines()[0][:200] if str(problem) else ''}"


def own(operands, options):
    """sparsek on these operands, and what it chose."""
    chosen, took = operands.choose(options.fresh)
    return operands.runner(chosen), dict(kind="own", params=chosen, tuning_s=round(took, 3), flops=operands.flops, result=operands.result, operands=operands)


def measure(torch, library, case, options):
    everything = [OPERATIONS[case.op](torch, library, case, options.seed)]
    try:
        base, skipped = everything[0], {}
        harness = Harness(torch, base.launches(), options.rounds, case.sample_ms, case.settle_ms)
        run, facts = own(base, options)
        attempt(harness, skipped, "sparsek", lambda: (run, facts))
        if "sparsek" in skipped:
            raise Wrong(skipped["sparsek"])
        differs = {}
        for name, changes in case.variants:
            operands = OPERATIONS[case.op](torch, library, case.variant(changes), options.seed)
            everything.append(operands)
            mine, theirs = base.problem(options.seed), operands.problem(options.seed)
            differs[name] = {key: theirs[key] for key in mine if mine[key] != theirs[key]}
            attempt(harness, skipped, name, lambda: own(operands, options))
        for name in case.against if options.peers else [name for name in case.against if name in ("cublas_dense", "cublaslt")]:
            def made():
                run, facts = CONTESTANTS[name](Trial(torch, library, case, base, options))
                return run, dict(facts, operands=base)
            attempt(harness, skipped, name, made)
        harness.race()
        return result_of(case, base, harness, skipped, differs, options)
    finally:
        for operands in everything:
            operands.close()
