"""Timing: contestants alternate round by round, each a CUDA graph of several launches; a ratio is the median over the rounds."""
import ctypes as C
import math
import statistics
import subprocess
import time


class Harness:
    """Contestants are functions f(i) that put one product on the current stream, with the operands of set i (modulo the sets)."""

    def __init__(self, torch, launches, rounds, sample_ms=0.0, settle_ms=0.0):
        self.torch, self.launches, self.rounds, self.sample_ms, self.settle_ms = torch, launches, rounds, sample_ms, settle_ms
        self.contestants = {}
        self.meter = Meter() if sample_ms else None

    def add(self, name, run, eager=False, **facts):
        """`eager`: launched one by one, as a caller does, so that the host's time counts."""
        torch = self.torch
        stream, graph = torch.cuda.Stream(), None
        with torch.cuda.stream(stream):
            for i in range(3):
                run(i)
            stream.synchronize()
            if not eager:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, stream=stream):
                    for i in range(self.launches):
                        run(i)
        torch.cuda.synchronize()
        self.contestants[name] = dict(graph=graph, stream=stream, run=run, repeats=1, samples=[], readings=[], **facts)

    def once(self, name):
        """One sample: microseconds of one launch."""
        torch, c = self.torch, self.contestants[name]
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        with torch.cuda.stream(c["stream"]):
            begin.record()
            for _ in range(c["repeats"]):
                if c["graph"] is not None:
                    c["graph"].replay()
                else:
                    for i in range(self.launches):
                        c["run"](i)
            end.record()
        if self.meter:
            c["readings"].append(self.meter.read(end))
        end.synchronize()
        return begin.elapsed_time(end) * 1e3 / self.launches / c["repeats"]

    def quick(self, name, times=3):
        self.once(name)
        return statistics.median(self.once(name) for _ in range(times))

    def race(self):
        for name, c in self.contestants.items():
            us = self.quick(name, 1)
            c["repeats"] = max(1, math.ceil(self.sample_ms * 1e3 / (us * self.launches)))
            c["readings"].clear()
        begun = time.monotonic()
        while time.monotonic() - begun < self.settle_ms / 1e3:
            for name in self.contestants:
                self.once(name)
        for c in self.contestants.values():
            c["readings"].clear()
        for round_number in range(self.rounds):
            names = list(self.contestants)
            first = round_number % len(names)
            for name in names[first:] + names[:first]:
                self.contestants[name]["samples"].append(self.once(name))


def median_ratio(a, b):
    return statistics.median(x / y for x, y in zip(a, b))


class Meter:
    """NVML's clock and power while a sample runs; nothing where there is no NVML."""

    def __init__(self):
        self.device = None
        try:
            self.lib = C.CDLL("libnvidia-ml.so.1")
            device = C.c_void_p()
            if self.lib.nvmlInit_v2() == 0 and self.lib.nvmlDeviceGetHandleByIndex_v2(C.c_uint(0), C.byref(device)) == 0:
                self.device = device
        except (OSError, AttributeError):
            pass

    def read(self, end):
        """(MHz, W) shortly before the event `end`; None for what is not known."""
        if self.device is None:
            return None, None
        clock, power, latest = C.c_uint(), C.c_uint(), (None, None)
        while not end.query():
            got_clock = self.lib.nvmlDeviceGetClockInfo(self.device, C.c_int(1), C.byref(clock)) == 0
            got_power = self.lib.nvmlDeviceGetPowerUsage(self.device, C.byref(power)) == 0
            latest = (clock.value if got_clock else None, power.value / 1e3 if got_power else None)
        return latest


def median_reading(readings, which):
    known = [reading[which] for reading in readings if reading[which] is not None]
    return round(statistics.median(known), 1) if known else None


def card():
    """What the driver says of the card now."""
    query = "name,driver_version,clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_event_reasons.active"
    try:
        text = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits", "-i", "0"], capture_output=True, text=True, timeout=20).stdout
        return dict(zip(("name", "driver", "sm_mhz", "mem_mhz", "power_w", "temperature_c", "throttle"), [x.strip() for x in text.strip().split(",")]))
    except (OSError, subprocess.TimeoutExpired):
        return {}
