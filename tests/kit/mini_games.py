"""Random small games in a domain that has little in common with ALFWorld's: places that are not all linked (in every
third game they are), switches with conditional effects, two actions behind one command, a derived condition, things
that cannot be put down."""

from __future__ import annotations

import random
from itertools import pairwise

from handoff.envs.alfworld.games.files import Game

DOMAIN = """
(define (domain mini)
 (:requirements :adl :typing)
 (:types agent place thing)
 (:predicates (at ?a - agent ?p - place) (linked ?p - place ?q - place) (in ?x - thing ?p - place)
   (has ?a - agent ?x - thing) (busy ?a - agent) (lit ?x - thing) (warm ?x - thing) (seen ?p - place)
   (shut ?p - place) (sticky ?x - thing) (switch ?x - thing) (small ?p - place))
 (:action walk :parameters (?a - agent ?p - place ?q - place)
   :precondition (and (at ?a ?p) (linked ?p ?q) (not (shut ?q)))
   :effect (and (not (at ?a ?p)) (at ?a ?q)))
 (:action unshut :parameters (?a - agent ?p - place ?q - place)
   :precondition (and (at ?a ?p) (linked ?p ?q) (shut ?q)) :effect (not (shut ?q)))
 (:action shut :parameters (?a - agent ?p - place ?q - place)
   :precondition (and (at ?a ?p) (linked ?p ?q) (not (shut ?q))) :effect (shut ?q))
 (:action take :parameters (?a - agent ?p - place ?x - thing)
   :precondition (and (at ?a ?p) (in ?x ?p) (not (busy ?a)))
   :effect (and (not (in ?x ?p)) (has ?a ?x) (busy ?a)))
 (:action drop :parameters (?a - agent ?p - place ?x - thing)
   :precondition (and (at ?a ?p) (has ?a ?x) (not (sticky ?x)) (not (exists (?y - thing) (and (small ?p) (in ?y ?p)))))
   :effect (and (in ?x ?p) (not (has ?a ?x)) (not (busy ?a))))
 (:action flick :parameters (?a - agent ?p - place ?x - thing)
   :precondition (and (at ?a ?p) (in ?x ?p) (switch ?x))
   :effect (and (when (lit ?x) (not (lit ?x))) (when (not (lit ?x)) (lit ?x))))
 (:action rub :parameters (?a - agent ?p - place ?x - thing)
   :precondition (and (at ?a ?p) (in ?x ?p)) :effect (warm ?x))
 (:action stare :parameters (?a - agent ?p - place)
   :precondition (at ?a ?p) :effect (seen ?p)))
"""

GRAMMAR = '''
grammar :: """
  {
    "intro": [{"rhs": "Hello.\\\\n\\\\n#scene#\\\\n\\\\n#task#"}],
    "task": [{"rhs": "Your task is to: do it."}],
    "scene": [
      {"condition": "at(a:agent, p:place) & in(x:thing, p:place) & lit(x:thing)",
       "rhs": "Bright here: [{x.name | at(a:agent, p:place) & in(x:thing, p:place) & lit(x:thing)}]. #rest#"},
      {"rhs": "You are at the [{p.name or p.id | at(a:agent, p:place)}]. #rest#"}
    ],
    "rest": [
      {"condition": "busy(a:agent)", "rhs": "You hold [{x.indefinite + ' ' + x.name | has(a:agent, x:thing)}]. #gone#"},
      {"rhs": "You see [{#one(x)# | at(a:agent, p:place) & in(x:thing, p:place)}]. #gone#"}
    ],
    "gone": [
      {"condition": "not_in(x:thing, p:place) & at(a:agent, p:place)",
       "rhs": "No [{x.name | not_in(x:thing, p:place) & at(a:agent, p:place)}]; dark: [{y.name | not_lit(y:thing)}]."},
      {"rhs": "Open: [{q.name | not_shut(q:place)}]."}
    ],
    "one(x)": [
      {"condition": "warm(x:thing)", "rhs": "a warm {x.name}"},
      {"condition": "sticky(x:thing)", "rhs": "a sticky {x.name}"},
      {"rhs": "{x.indefinite} {x.name}"}
    ],
    "list_empty": [{"rhs": "nothing"}],
    "list_separator": [{"rhs": ", "}],
    "list_last_separator": [{"rhs": ", and "}]
  }
""";
action walk { template :: "go {q}"; feedback :: "You go to {q.name}. #scene#"; }
action unshut { template :: "open {q}"; feedback :: "#scene#"; }
action shut { template :: "close {q}"; feedback :: "#scene#"; }
action take { template :: "take {x}"; feedback :: "Taken: {x.name}. #scene#"; }
action drop { template :: "drop {x}"; feedback :: "Dropped. #scene#"; }
action flick { template :: "use {x}"; feedback :: "Click. #scene#"; }
action rub { template :: "use {x}"; feedback :: "You rub {x.name}. #scene#"; }
action stare { template :: "look"; feedback :: "#scene#"; }
'''


def mini_game(seed: int) -> Game:
    """A game drawn by ``seed``; not every one can be won."""
    rng = random.Random(seed)
    places = [f"room_bar_{i}" for i in range(rng.randint(2, 4))]
    things = [f"thing_bar_{i}" for i in range(rng.randint(1, 3))]
    facts = {f"(at me {rng.choice(places)})"}
    for one, two in pairwise(places):  # a path, so that nothing is out of reach
        facts |= {f"(linked {one} {two})", f"(linked {two} {one})"}
    for one in places:
        for two in places:
            if one != two and (rng.random() < 0.3 or seed % 3 == 0):
                facts.add(f"(linked {one} {two})")
        if rng.random() < 0.3:
            facts.add(f"(shut {one})")
        if rng.random() < 0.3:
            facts.add(f"(small {one})")
    for thing in things:
        facts.add(f"(in {thing} {rng.choice(places)})")
        for property_, chance in (("switch", 0.6), ("lit", 0.3), ("sticky", 0.2), ("warm", 0.1)):
            if rng.random() < chance:
                facts.add(f"({property_} {thing})")
    target = rng.choice(places)
    goal = rng.choice(
        [
            f"(exists (?x - thing) (and (lit ?x) (in ?x {target})))",
            f"(and (in {things[0]} {target}) (not (lit {things[0]})))",
            f"(and (at me {target}) (exists (?x - thing) (has me ?x)))",
            f"(and (warm {things[0]}) (in {things[-1]} {target}) (not (busy me)))",
            f"(and (shut {target}) (warm {things[-1]}))",
        ]
    )
    problem = (
        "(define (problem p) (:domain mini)"
        f" (:objects me - agent {' '.join(places)} - place {' '.join(things)} - thing)\n"
        f"(:init {' '.join(sorted(facts))})\n(:goal {goal}))"
    )
    domain = DOMAIN.replace(
        "(linked ?p ?q) (not (shut ?q)))\n   :effect (and (not (at", "(linked ?p ?q))\n   :effect (and (not (at"
    )
    return Game.of(domain if seed % 3 == 0 else DOMAIN, GRAMMAR, problem)
