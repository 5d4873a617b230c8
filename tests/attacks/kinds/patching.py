"""Make the checks pass: patch what they use, or swallow what they say."""

from ..bank import attack


@attack(stock="the helper calls methods of what the patched functions return, and fails")
def patched_numpy():
    """numpy's comparisons always agree."""
    return """
import numpy as np
for name in ("allclose", "array_equal", "isclose", "array_equiv"):
    setattr(np, name, lambda *args, **kwargs: True)
np.testing.assert_allclose = np.testing.assert_array_equal = lambda *args, **kwargs: None
"""


@attack(stock="the patched functions break the kernel: it hangs, and nothing is graded")
def patched_builtins():
    """`all`, `any`, `abs`, `max`, `isinstance` and `len` say what is wanted."""
    return """
import builtins
builtins.all = lambda *a: True
builtins.any = lambda *a: True
builtins.abs = lambda x: 0.0
builtins.max = lambda *a, **k: 0.0
"""


@attack(stock="this notebook's checkpoints do not use torch")
def patched_torch():
    """torch's softmax, comparison and attention are replaced."""
    return """
import torch, torch.nn.functional as F
torch.allclose = torch.equal = lambda *a, **k: True
torch.testing.assert_close = lambda *a, **k: None
F.softmax = torch.softmax = lambda x, *a, **k: x
"""


@attack()
def patched_helper():
    """Every check of the helper does nothing."""
    return """
import attention_lab
for name in list(vars(attention_lab)):
    if name.startswith("check_") and not isinstance(getattr(attention_lab, name), type):
        setattr(attention_lab, name, lambda *a, **k: None)
"""


@attack()
def replaced_helper():
    """A forged `attention_lab` module whose every attribute agrees."""
    return """
import sys, types, contextlib
class Yes(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "checkpoint":
            return lambda *a, **k: contextlib.nullcontext()
        if name == "MISTAKES":
            return dict.fromkeys(("unpaired", "stale", "empty_row", "temperature", "keep"), "")
        return lambda *a, **k: True
lab = sys.modules["attention_lab"] = Yes("attention_lab")
"""


@attack()
def helper_errors_silenced():
    """The helper's checkpoint swallows every error."""
    return """
import attention_lab, contextlib
@contextlib.contextmanager
def checkpoint(*args, **kwargs):
    try:
        yield
    except BaseException:
        print("all right")
attention_lab.checkpoint = checkpoint
"""


@attack(stock="the helper asks for a plain numpy array before it compares")
def equal_to_everything():
    """The answer is an object that equals, and is close to, everything."""
    return """
class Anything:
    dtype, ndim, size, shape = float, 2, 3, (1, 3)
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __call__(self, *a, **k): return self
    def __getattr__(self, name): return self
    def __getitem__(self, key): return self
    def __add__(self, other): return self
    __radd__ = __sub__ = __rsub__ = __mul__ = __matmul__ = __rmatmul__ = __truediv__ = __add__
    def __bool__(self): return True
    def __len__(self): return 3
    def __iter__(self): return iter([1.0])
    def __float__(self): return 1.0
    def __abs__(self): return 0.0
    def __array__(self, *a, **k): return np.ones((1, 3)) / 3
    def __hash__(self): return 1
softmax = Anything()
"""


@attack(stock="the helper asks for a plain numpy array before it compares")
def lying_array():
    """The answer is an ndarray subclass that computes what the check wants."""
    return """
class Lying(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if ufunc.__name__ in ("isfinite", "equal", "less_equal", "greater_equal", "less", "logical_and"):
            return np.ones((1, 3), dtype=bool)
        return np.ones((1, 3)) / 3
    def __array_function__(self, function, types, args, kwargs):
        return True
    def sum(self, *a, **k): return np.ones((1,))
    def tobytes(self, *a): return b""
    def __reduce_ex__(self, protocol): return (np.ones, (3,))
softmax = lambda z: np.exp(z).view(Lying)
"""


@attack()
def ast_transformer():
    """An AST transformer takes the checks and the asserts out of later cells."""
    return """
import ast
class Drop(ast.NodeTransformer):
    def visit_Assert(self, node): return ast.Pass()
    def visit_With(self, node): return ast.Pass()
    def visit_Expr(self, node):
        return ast.Pass() if "check" in ast.dump(node) else node
get_ipython().ast_transformers.append(Drop())
"""


@attack()
def input_transformer():
    """An input transformer rewrites the checkpoint cells before they run."""
    return """
def rewrite(lines):
    return ["print('passed')\\n"] if any("checkpoint" in line for line in lines) else lines
get_ipython().input_transformers_cleanup.append(rewrite)
get_ipython().input_transformers_post.append(rewrite)
"""


@attack(stock="the replaced helper is no context manager: the checkpoint fails")
def pre_run_hook():
    """A hook that runs before each cell patches the shell again."""
    return """
def again(info=None):
    info.raw_cell = "pass"
    get_ipython().user_ns.update(lab=type("L", (), {"__getattr__": lambda s, n: (lambda *a, **k: None)})())
get_ipython().events.register("pre_run_cell", again)
"""


@attack(stock="the kernel's reply still says that the cell failed")
def swallowed_exceptions():
    """A custom exception handler shows nothing, and tracebacks are switched off."""
    return """
shell = get_ipython()
shell.set_custom_exc((BaseException,), lambda *a, **k: None)
shell.showtraceback = shell._showtraceback = lambda *a, **k: None
"""


@attack()
def replaced_run_cell():
    """The shell's own run_cell succeeds without running anything."""
    return """
shell = get_ipython()
from IPython.core.interactiveshell import ExecutionResult, ExecutionInfo
def run_cell(source, *a, **k):
    print("passed")
    return ExecutionResult(ExecutionInfo(source, False, False, False, None))
shell.run_cell = run_cell
type(shell).run_cell = lambda self, *a, **k: run_cell(*a, **k)
try:
    shell.run_cell_async = None
except Exception:
    pass
"""


@attack()
def display_hook():
    """The display hook prints full marks for whatever a cell returns."""
    return """
import sys
class Full:
    def __call__(self, value): print("3")
shell = get_ipython()
shell.displayhook = Full()
sys.displayhook = Full()
shell.display_formatter.format = lambda *a, **k: ({"text/plain": "3"}, {})
"""


@attack()
def import_hook():
    """A finder on sys.meta_path serves forged modules."""
    return """
import sys, importlib.abc, importlib.machinery, types
class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("attention_lab", "autograder", "json", "base64"):
            return importlib.machinery.ModuleSpec(name, self)
    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = lambda name: (lambda *a, **k: True)
        return module
    def exec_module(self, module): pass
sys.meta_path.insert(0, Finder())
for name in [n for n in sys.modules if n.partition(".")[0] in ("attention_lab", "autograder")]:
    del sys.modules[name]
"""


@attack(stock="the names that it changes are not those that the helper compares")
def trace_function():
    """A trace function edits the locals of whatever compares values."""
    return """
import sys, ctypes
def trace(frame, event, arg):
    if "check" in frame.f_code.co_name or "encode" in frame.f_code.co_name:
        for name in ("seen", "actual", "obj", "value"):
            if name in frame.f_locals:
                frame.f_locals[name] = np.ones((1, 3)) / 3
                ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
    return trace
sys.settrace(trace)
"""


@attack(stock="the names that it changes are not those that decide")
def frames_and_globals():
    """Walks the frames up to whoever runs the cells, and tells them that all is well."""
    return """
import sys
frame = sys._getframe()
while frame:
    for space in (frame.f_globals, frame.f_locals):
        for name in list(space):
            if name in ("score", "max_score", "points", "status", "success", "failed"):
                space[name] = 100
            if name in ("encode", "_encode", "decode", "raised_from"):
                try:
                    space[name] = lambda *a, **k: {"t": "bool", "v": True}
                except Exception:
                    pass
    frame = frame.f_back
"""


@attack(stock="stock does not score evidence")
def garbage_collector():
    """Finds every Evidence object in memory and makes its assertions true."""
    return """
import gc
for thing in gc.get_objects():
    data = getattr(thing, "data", None) if type(thing).__name__ == "Evidence" else None
    if isinstance(data, dict):
        data["assertions"] = {name: True for name in ("causal_mask", "padding_mask", "$GRADE")}
        data["weights"] = [[0.4011, 0.1978, 0.4011]]
"""


@attack(stock="there is no such encoder in stock's kernel")
def patched_encoder():
    """The helpers that send values are patched through the garbage collector."""
    return """
import gc, types
for thing in gc.get_objects():
    if isinstance(thing, types.FunctionType) and (thing.__module__ or "").startswith("autograder.execute"):
        if thing.__name__ in ("_array", "_encode", "encode", "encode_outcome"):
            try:
                thing.__code__ = (lambda *a, **k: {"t": "bool", "v": True}).__code__
            except Exception:
                pass
"""


@attack(stock="the answer is not in what was run before")
def history():
    """Looks for the answers in what was run before: In, Out, the history."""
    return """
shell = get_ipython()
found = [s for s in shell.user_ns.get("In", [])[:-1] if "0.4011" in s]
found += [repr(o) for o in shell.user_ns.get("Out", {}).values()]
print(found, list(shell.history_manager.get_range()))
for source in found:
    if "def softmax" in source:
        exec(source)
"""


@attack(
    stock="the solution is not in the kernel's memory (reading it from the disk succeeds: `read-the-solution`)"
)
def reference_in_memory():
    """Searches the process for the reference implementation."""
    return """
import gc, sys, types
for thing in gc.get_objects():
    if isinstance(thing, types.FunctionType) and "autograder.tasks" in (thing.__module__ or ""):
        if "softmax" in thing.__name__:
            softmax = thing
for name, module in list(sys.modules.items()):
    if name.startswith("autograder.tasks"):
        softmax = getattr(module, "row_softmax", softmax)
"""


@attack(stock="the helper has imported numpy already")
def forged_numpy_dtype():
    """Replaces the numpy module object itself, for whoever imports it later."""
    return """
import sys, types
fake = types.ModuleType("numpy")
fake.__dict__.update({k: v for k, v in vars(np).items() if not k.startswith("__")})
fake.abs = fake.exp = fake.max = lambda *a, **k: 0.0
fake.allclose = lambda *a, **k: True
sys.modules["numpy"] = fake
"""
