"""Who gets which submission, and what is done when workers go: with a cluster of invented workers."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import pytest

from autograder.course import Course, CourseError
from autograder.grade import cluster
from autograder.grade.cluster import LIVES, Crew
from autograder.grade.submission import Graded
from autograder.grade.worker import Failed, Unready

ADDRESSES = ("tcp://one", "tcp://two")


class Killed(Exception):
    pass


class Cancelled(Exception):
    pass


class Future:
    """A task at a worker; it ends when the invented cluster says so."""

    def __init__(self, key: str, function: str, args: tuple, worker: str) -> None:
        self.key, self.function, self.args, self.worker = key, function, args, worker

    def add_done_callback(self, call) -> None:
        self.call = call

    def end(self, outcome) -> None:
        plain = self.function != "grade" or isinstance(outcome, Exception)
        self.outcome = outcome if plain else pickle.dumps(outcome)
        self.call(self)

    def result(self, timeout):
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class Client:
    """An invented cluster: greetings are answered, what happens to submissions is each test's business."""

    id = "c"
    scheduler = SimpleNamespace(address="tcp://scheduler")

    def __init__(self) -> None:
        self.present = dict.fromkeys(ADDRESSES, 1)
        self.greeting = dict.fromkeys(ADDRESSES, "")
        self.open: list[Future] = []
        self.sent: list[tuple[str, str]] = []

    def nthreads(self) -> dict[str, int]:
        return dict(self.present)

    def submit(self, function, *args, key, workers):
        future = Future(key, function.__name__, args, workers[0])
        self.open.append(future)
        return future

    def greet(self) -> None:
        for future in [f for f in self.open if f.function != "grade"]:
            self.open.remove(future)
            knock = future.function == "get_data"
            future.end(b"its grader" if knock else self.greeting[future.worker])

    def take(self, worker: str) -> list[Future]:
        """The submissions that a worker has."""
        return [f for f in self.open if f.function == "grade" and f.worker == worker]

    def lose(self, worker: str) -> None:
        """A worker dies, and another one starts in its place, under another address."""
        del self.present[worker]
        self.open = [f for f in self.open if f.worker != worker]
        self.present[worker + "+"] = 1
        self.greeting[worker + "+"] = ""


@pytest.fixture
def client(monkeypatch):
    monkeypatch.setattr(cluster, "PAUSE", 0.0)
    monkeypatch.setattr(cluster, "pack", lambda folder: ())
    return Client()


@pytest.fixture
def crew(client, tmp_path):
    dask = SimpleNamespace(
        TimeoutError=TimeoutError,
        CancelledError=Cancelled,
    )
    plan = SimpleNamespace(course=Course(tmp_path), name="lesson", max_score=3.0)
    job = SimpleNamespace(key="run")
    return Crew(dask, client, plan, job, say=lambda text: said.append(text))


said: list[str] = []


def work(crew: Crew, client: Client, students: str, act) -> dict[str, dict]:
    """Grade students `a`, `b`, ...; `act(future)` says what a worker makes of each submission."""
    said.clear()
    done: dict[str, dict] = {}
    crew.waiting.extend(cluster._Task(student, "digest") for student in students)
    for _ in range(500):
        if not (crew.waiting or crew.running or crew.outcomes):
            return done
        client.greet()
        crew._look_around()
        crew._hand_out()
        for worker in list(client.present):
            for future in client.take(worker)[:1]:
                act(future)
        crew._take_in()
        while crew.outcomes:
            graded, digest = crew.outcomes.popleft()
            assert digest == "digest"
            assert graded.student not in done
            done[graded.student] = graded.entry
    raise AssertionError("it goes on for ever")


def well(client: Client):
    """A worker that does what it should, and notes what it had in hand then."""

    def act(future: Future) -> None:
        client.sent.append((future.args[1], future.worker))
        client.open.remove(future)
        future.end(Graded(future.args[1], {"status": "graded"}))

    return act


def test_everybody_is_graded_once_and_both_workers_work(crew, client):
    done = work(crew, client, "abcdefgh", well(client))
    assert sorted(done) == list("abcdefgh")
    assert {worker for _, worker in client.sent} == set(ADDRESSES)
    assert not any(worker.tasks for worker in crew.workers.values())


def test_a_submission_that_kills_is_last_alone_and_given_up(crew, client):
    deaths, company = [], []
    good = well(client)

    def act(future):
        if future.args[1] != "d":
            return good(future)
        deaths.append(future.worker)
        company.append(len(client.take(future.worker)) - 1)
        client.lose(future.worker)
        return None

    done = work(crew, client, "abcdefgh", act)
    assert {k for k, v in done.items() if v["status"] == "graded"} == set("abcefgh")
    assert done["d"]["status"] == "ungradable"
    assert done["d"]["score"] is None
    assert len(deaths) == LIVES
    assert company[-1] == 0
    assert sum("is gone" in line for line in said) == LIVES


def test_a_submission_whose_worker_is_only_unlucky_is_graded(crew, client):
    lost = []
    good = well(client)

    def act(future):
        if len(lost) < LIVES - 1 and future.args[1] == "a":
            lost.append(future.worker)
            client.lose(future.worker)
        else:
            good(future)

    assert {v["status"] for v in work(crew, client, "abcd", act).values()} == {"graded"}
    assert len(lost) == LIVES - 1


def test_a_worker_that_died_and_came_back_under_its_address_is_greeted_again(crew, client):
    good = well(client)
    unready = []

    def act(future):
        if future.args[1] == "b" and not unready:
            unready.append(future.worker)
            client.open.remove(future)
            future.end(Unready())
        else:
            good(future)

    assert {v["status"] for v in work(crew, client, "abcd", act).values()} == {"graded"}
    assert unready


@pytest.mark.parametrize("outcome", [Killed(), Cancelled()])
def test_what_dask_takes_back_is_graded_again(crew, client, outcome):
    good = well(client)
    ended = []

    def act(future):
        if future.args[1] == "c" and not ended:
            ended.append(future)
            client.open.remove(future)
            future.end(outcome)
        else:
            good(future)

    assert {v["status"] for v in work(crew, client, "abcd", act).values()} == {"graded"}
    assert ended


def test_a_fault_with_one_submission_is_that_students_ungradable(crew, client):
    good = well(client)
    tried = []

    def act(future):
        if future.args[1] == "c":
            tried.append(future.worker)
            client.open.remove(future)
            future.end(Failed("OSError: invented"))
        else:
            good(future)

    done = work(crew, client, "abcd", act)
    assert len(tried) == LIVES
    assert done["c"]["status"] == "ungradable"
    assert "invented" in done["c"]["reason"]
    assert {done[s]["status"] for s in "abd"} == {"graded"}


def test_what_cannot_be_sent_is_ungradable_and_says_what_to_do(crew, client, monkeypatch):
    def pack(folder):
        if folder.parent.name == "b":
            raise cluster.Unsendable("it holds more than 128 MB")
        return ()

    monkeypatch.setattr(cluster, "pack", pack)
    done = work(crew, client, "abc", well(client))
    assert done["b"]["status"] == "ungradable"
    assert "128 MB" in done["b"]["reason"]
    assert "--student b" in done["b"]["reason"]
    assert {done[s]["status"] for s in "ac"} == {"graded"}


def test_a_worker_that_is_refused_gets_nothing(crew, client):
    client.greeting["tcp://two"] = "its grader judges by other definitions"
    work(crew, client, "abcd", well(client))
    assert {worker for _, worker in client.sent} == {"tcp://one"}
    assert len(said) == 1
    assert "tcp://two" in said[0]


def test_a_worker_that_can_no_longer_isolate_is_refused_and_others_go_on(crew, client):
    good = well(client)

    def act(future):
        if future.worker == "tcp://two":
            client.open.remove(future)
            future.end(Unready("this machine cannot isolate students' code"))
        else:
            good(future)

    assert {v["status"] for v in work(crew, client, "abcd", act).values()} == {"graded"}
    assert {worker for _, worker in client.sent} == {"tcp://one"}


def test_when_all_workers_are_refused_the_reason_is_said(crew, client):
    client.greeting = dict.fromkeys(ADDRESSES, "other definitions")
    with pytest.raises(CourseError, match="other definitions"):
        work(crew, client, "ab", well(client))


def test_when_no_worker_is_left_grading_ends_with_one_line(crew, client, monkeypatch):
    monkeypatch.setattr(cluster, "RETURN", 0.0)

    def act(future):
        client.present.clear()

    with pytest.raises(CourseError, match="no worker is at"):
        work(crew, client, "ab", act)


def test_when_the_scheduler_is_gone_grading_ends_with_one_line(crew, client):
    def gone():
        raise OSError("closed")

    client.nthreads = gone
    with pytest.raises(CourseError, match="scheduler went away"):
        work(crew, client, "ab", well(client))
