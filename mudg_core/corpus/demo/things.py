"""The kinds of things of the demo world: how each is drawn, coloured and named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mudg_core.corpus.demo import bodies, buildings, faces, food, household, swimmers, vehicles
from mudg_core.corpus.demo.drawing import Pen

_HYPERNYMS = {
    "animal": ("animal", "creature"),
    "vehicle": ("vehicle", "means of transport"),
    "food": ("food item", "snack"),
    "plant": ("plant",),
    "building": ("building",),
    "household": ("household item", "object"),
    "clothes": ("piece of clothing", "fashion item"),
}


@dataclass(frozen=True)
class Kind:
    """`colours` are the usual ones (none: it has its own); `patterned` ones can wear stripes or spots."""

    name: str
    group: str
    draw: Callable[[Pen], None] = field(repr=False, compare=False)
    colours: tuple[str, ...] = ()
    patterned: bool = False
    view: str = "front"
    synonyms: tuple[str, ...] = ()
    plural: str = ""
    innate: str | None = None

    @property
    def hypernyms(self) -> tuple[str, ...]:
        return _HYPERNYMS[self.group]

    @property
    def many(self) -> str:
        return self.plural or self.name + "s"


def _kinds() -> tuple[Kind, ...]:
    paint = ("red", "blue", "yellow", "green", "white", "orange", "black")
    bright = ("red", "blue", "yellow", "green", "purple", "pink", "white", "orange")
    return (
        Kind("cat", "animal", faces.cat, ("orange", "gray", "black", "white", "brown"), True, "front",
             ("kitten", "kitty")),
        Kind("dog", "animal", faces.dog, ("brown", "white", "orange", "gray", "black"), True, "front",
             ("puppy", "doggy")),
        Kind("car", "vehicle", vehicles.car, paint, True, "side", ("automobile", "hatchback")),
        Kind("house", "building", buildings.house, ("red", "brown", "blue", "green"), False, "front",
             ("cottage", "family home")),
        Kind("flower", "plant", food.flower, bright, False, "front", ("blossom", "bloom")),
        Kind("t-shirt", "clothes", household.shirt, bright, True, "front", ("tee", "short sleeved shirt")),
        Kind("bird", "animal", bodies.bird, ("blue", "red", "yellow", "brown"), False, "side",
             ("songbird", "little bird")),
        Kind("apple", "food", food.apple, ("red", "red", "green", "yellow"), False, "front", ("ripe apple",)),
        Kind("horse", "animal", bodies.horse, ("brown", "black", "white", "gray"), False, "side",
             ("pony", "stallion")),
        Kind("shoe", "clothes", household.shoe, bright, False, "side", ("sneaker", "trainer")),
        Kind("mug", "household", household.mug, bright, True, "side", ("coffee mug",)),
        Kind("truck", "vehicle", vehicles.truck, paint, False, "side", ("lorry",)),
        Kind("fish", "animal", swimmers.fish, ("orange", "blue", "yellow", "red"), True, "side",
             ("tropical fish",), "fish"),
        Kind("airplane", "vehicle", vehicles.airplane, ("white", "blue", "red", "gray"), False, "top",
             ("plane", "jet")),
        Kind("tree", "plant", food.tree, ("green", "green", "green", "orange"), False, "front",
             ("leafy tree",)),
        Kind("clock", "household", household.clock, bright, False, "front", ("alarm clock",)),
        Kind("banana", "food", food.banana, ("yellow",), False, "side", ("ripe banana",)),
        Kind("rabbit", "animal", faces.rabbit, ("white", "gray", "brown"), True, "front", ("bunny", "hare")),
        Kind("bus", "vehicle", vehicles.bus, paint, False, "side", ("coach", "city bus"), "buses"),
        Kind("chair", "household", household.chair, ("brown", "red", "white", "black", "blue"), False, "side",
             ("seat", "wooden chair")),
        Kind("pizza", "food", food.pizza, (), False, "top", ("slice of pizza", "pizza slice")),
        Kind("bear", "animal", faces.bear, ("brown", "black", "white"), False, "front", ("grizzly",)),
        Kind("bicycle", "vehicle", vehicles.bicycle, paint, False, "side", ("bike",)),
        Kind("dress", "clothes", household.dress, bright, True, "front", ("gown", "frock"), "dresses"),
        Kind("owl", "animal", faces.owl, ("brown", "gray", "white"), False, "front", ("night owl",)),
        Kind("umbrella", "household", household.umbrella, bright, False, "side", ("parasol",)),
        Kind("sailboat", "vehicle", vehicles.sailboat, paint, False, "side", ("sailing boat", "yacht")),
        Kind("tomato", "food", food.tomato, ("red", "red", "red", "orange", "green"), False, "front",
             ("ripe tomato",), "tomatoes"),
        Kind("hat", "clothes", household.hat, ("brown", "black", "red", "blue", "yellow"), False, "front",
             ("fedora",)),
        Kind("elephant", "animal", bodies.elephant, ("gray",), False, "side", ("tusker",)),
        Kind("lamp", "household", household.lamp, bright, True, "front", ("table lamp", "desk light")),
        Kind("pig", "animal", faces.pig, ("pink", "pink", "brown"), True, "front", ("piglet", "hog")),
        Kind("ice cream", "food", food.ice_cream, ("pink", "brown", "yellow", "green"), False, "front",
             ("ice cream cone", "gelato"), "ice creams"),
        Kind("train", "vehicle", vehicles.train, paint, False, "side", ("steam train", "locomotive")),
        Kind("fox", "animal", faces.fox, ("orange", "orange", "orange", "white", "gray"), False, "front",
             ("red fox", "vixen"), "foxes"),
        Kind("strawberry", "food", food.strawberry, ("red",), False, "front", ("ripe strawberry",),
             "strawberries"),
        Kind("castle", "building", buildings.castle, ("gray", "brown", "white"), False, "front",
             ("fortress", "citadel")),
        Kind("butterfly", "animal", swimmers.butterfly, bright, True, "top", ("moth",), "butterflies"),
        Kind("book", "household", household.book, bright, False, "front", ("hardcover book", "novel")),
        Kind("duck", "animal", bodies.duck, ("yellow", "white", "brown"), False, "side", ("duckling",)),
        Kind("ship", "vehicle", vehicles.ship, ("red", "blue", "black", "white"), False, "side",
             ("ocean liner", "steamer")),
        Kind("cup", "household", household.cup, bright, False, "side", ("teacup", "cup and saucer")),
        Kind("sheep", "animal", bodies.sheep, ("white", "white", "gray", "black"), False, "side",
             ("lamb",), "sheep"),
        Kind("carrot", "food", food.carrot, ("orange",), False, "front", ("fresh carrot",)),
        Kind("boot", "clothes", household.boot, ("brown", "black", "red", "yellow"), False, "side",
             ("ankle boot",)),
        Kind("penguin", "animal", bodies.penguin, ("black", "black", "blue", "gray"), False, "front",
             ("emperor penguin",)),
        Kind("van", "vehicle", vehicles.van, paint, True, "side", ("minivan", "delivery van")),
        Kind("church", "building", buildings.church, ("red", "blue", "gray", "brown"), False, "front",
             ("chapel",), "churches"),
        Kind("cherry", "food", food.cherry, ("red",), False, "front", ("sweet cherry",), "cherries"),
        Kind("glasses", "clothes", household.glasses, ("black", "red", "blue", "brown"), False, "front",
             ("spectacles", "eyeglasses"), "glasses"),
        Kind("cactus", "plant", food.cactus, ("green",), False, "front", ("potted cactus",), "cacti"),
        Kind("wolf", "animal", faces.wolf, ("gray", "gray", "white", "black", "brown"), False, "front",
             ("gray wolf",), "wolves"),
        Kind("helicopter", "vehicle", vehicles.helicopter, paint, False, "side", ("chopper",)),
        Kind("key", "household", household.key, ("yellow", "gray", "black", "brown"), False, "side",
             ("door key",)),
        Kind("turtle", "animal", swimmers.turtle, ("green", "green", "brown"), False, "side", ("tortoise",)),
        Kind("pear", "food", food.pear, ("green", "yellow"), False, "front", ("ripe pear",)),
        Kind("tractor", "vehicle", vehicles.tractor, ("red", "green", "blue", "orange"), False, "side",
             ("farm tractor",)),
        Kind("lighthouse", "building", buildings.lighthouse, ("red", "blue", "black"), False, "front",
             ("beacon tower",)),
        Kind("mushroom", "food", food.mushroom, ("red", "brown", "orange"), False, "side", ("toadstool",)),
        Kind("teapot", "household", household.teapot, bright, True, "side", ("tea pot",)),
        Kind("frog", "animal", swimmers.frog, ("green", "green", "brown"), True, "front", ("toad",)),
        Kind("shark", "animal", swimmers.shark, ("gray", "gray", "blue"), False, "side", ("great white",)),
        Kind("rocket", "vehicle", vehicles.rocket, ("white", "gray", "red", "blue"), False, "side",
             ("spaceship",)),
        Kind("zebra", "animal", bodies.zebra, (), False, "side", ("wild zebra",), innate="stripes"),
        Kind("windmill", "building", buildings.windmill, ("red", "brown", "blue"), False, "front",
             ("dutch mill",)),
        Kind("avocado", "food", food.avocado, ("green",), False, "front", ("avocado half",)),
        Kind("giraffe", "animal", bodies.giraffe, ("yellow", "orange"), False, "side", ("tall giraffe",),
             innate="spots"),
    )


KINDS: tuple[Kind, ...] = _kinds()
KIND_BY_NAME: dict[str, Kind] = {kind.name: kind for kind in KINDS}


def _zipf() -> dict[str, float]:
    """Long-tailed shares in the order above: the first is met eleven times as often as the last."""
    weights = {kind.name: 1.0 / (rank + 6.0) for rank, kind in enumerate(KINDS)}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


KIND_SHARES: dict[str, float] = _zipf()
