"""What the descriptor grammar speaks of: one list a type, so that a rule can only join what goes together.

General on purpose: a descriptor is joined to classes that nobody here knows, from textures to aeroplanes.
"""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    """The entries of a list that is written with commas."""
    return tuple(" ".join(entry.split()) for entry in text.split(","))


# Colours and simple looks
COLOURS = words(
    """red, blue, green, yellow, orange, purple, pink, brown, black, white, grey, golden, silver, beige,
    turquoise"""
)
HUES = COLOURS[:7]
MAIN_COLOURS = COLOURS[:10]
LOOKS = words(
    """small, large, tiny, huge, tall, short, long, wide, narrow, round, flat, thin, thick, simple, detailed,
    shiny, dull, bright, dark, pale, colorful, plain, old, new, clean, dirty, smooth, rough, soft, hard,
    transparent, blurry, sharp, funny, elegant, symmetrical, curved, pointed, empty, full, broken, wet,
    glowing, furry, striped, spotted, checkered, patterned"""
)
SIZES = words("small, large, tiny, huge, tall, short, long, wide, narrow, slim, bulky, compact")
SURFACES = words("shiny, dull, smooth, rough, soft, hard, matte, glossy, fuzzy, grainy, bumpy, polished")
CONDITIONS = words("old, new, clean, dirty, worn, faded, dusty, wet, weathered, freshly painted")
SHAPES = words("round, square, oval, triangular, rectangular, curved, pointed, flat, narrow, wide")
SHAPED = words("outline, top, base, body, front")
TEXTURES = words(
    "smooth, rough, bumpy, grainy, scaly, fuzzy, wrinkled, cracked, glossy, matte, wet, dusty, woven"
)
TEXTURED = words("surface, outside, top, coating, front, back")

# Patterns, markings and parts
PATTERNS = words(
    """stripes, spots, dots, a plain surface, a checkered pattern, a shiny surface, a rough texture,
    soft edges"""
)
PARTS = words(
    """two colors, many colors, one main color, a dark outline, a thick outline, a thin outline,
    a clear shape, a round shape, a long shape, a shadow below it, bright highlights, a dark side,
    rounded corners, sharp corners, small details, a visible front, two eyes, four legs, wings, wheels,
    windows, leaves, a handle, a pointed top, a flat base"""
)
MARKINGS = words("stripes, spots, dots, patches, lines, edges, tips, details, markings, accents")
COLOURED_PLACES = words("top, base, front, center, border, outline, back, side")
PATTERN_KINDS = words("regular, irregular, fine, bold")
PATTERN_SHAPES = words("dots, stripes, squares, lines, circles, flowers")
NUMBERS = words("two, three, four, six, several, many")
COUNTED_PARTS = words(
    """legs, wheels, windows, wings, handles, buttons, petals, leaves, points, holes, corners, sides, ends,
    layers, rows"""
)
LIMB_FORMS = words("long, short, thin, thick, curved, straight")
LIMBS = words("legs, arms, handles, horns, leaves, branches, tubes, cables, straps, feathers, hairs")
OPENING_FORMS = words("round, square, small, large, open, closed, dark")
OPENINGS = words("windows, doors, lids, pockets")
COLOURED_PARTS = words("legs, wheels, windows, wings, handles, leaves, buttons, straps, eyes, tips")
PART_FORMS = words("small, large, long, short, thin, thick, curved, pointed")
SINGLE_PARTS = words("handle, tail, neck, tip, head, stem, base, back, front")

# Materials, each with the finishes it can have
MATERIALS = words(
    """wood, metal, glass, plastic, paper, stone, clay, leather, rubber, wax, wire, straw, ice, sand,
    cardboard, porcelain, concrete, brick, fabric, foam, rope, bone, shell, felt, yarn, foil, chocolate,
    dough, mud, snow"""
)
FINISHES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (
        words("brushed, polished, hammered, dull, shiny, dented, painted, scratched"),
        words("metal, steel, iron, copper, brass, bronze, aluminum, tin"),
    ),
    (words("rusty, galvanized"), words("metal, steel, iron")),
    (
        words("painted, carved, polished, rough, weathered, dark, pale"),
        words("wood, oak, pine, birch, walnut, bamboo"),
    ),
    (
        words("polished, rough, carved, cracked, smooth, mossy"),
        words("stone, marble, granite, sandstone, limestone, slate"),
    ),
    (
        words("soft, wrinkled, folded, worn, patterned, striped, colorful, embroidered"),
        words("fabric, cotton, wool, silk, denim, linen, velvet, felt, canvas"),
    ),
    (words("soft, worn, cracked, polished, stitched"), words("leather, brown leather, black leather")),
    (words("clear, frosted, colored, cracked, stained, tinted, curved"), words("glass")),
    (words("clear, shiny, colored, transparent, recycled, hard, molded"), words("plastic")),
    (words("glazed, painted, cracked, white"), words("clay, porcelain, ceramic")),
    (words("folded, torn, crumpled, colored, recycled, plain"), words("paper, cardboard")),
    (words("bare, painted, crumbling, old, stacked"), words("brick, concrete")),
)
CRAFTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "a sculpture",
        words("stone, wood, clay, bronze, ice, sand, wire, glass, metal, paper, wax, marble"),
    ),
    ("a model", words("wood, plastic, paper, cardboard, metal, clay, toy bricks, matchsticks")),
    ("a toy", words("wood, plastic, felt, tin, rubber, wool, fabric")),
    ("an ornament", words("glass, porcelain, wood, metal, paper, straw")),
)

# Where, when, and in what light
PLACES = words(
    """on grass, on a green meadow, on sand, on snow, on water, on a road, on a table, on a wooden floor,
    in the sky, in the city, in a garden, in a forest, in a kitchen, in a room, at the beach, at night,
    at sunset, by day, in the rain, in bright light, in the shade, on a plain background,
    on a white background, on a dark background, on a colorful background, on a gradient background"""
)
OUTDOORS = words(
    """in a garden, in a forest, in a park, at the beach, by a river, by a lake, on a hill, on a mountain,
    in a field, in a street, in a yard, on a bridge, in a parking lot, on a path, in a village,
    in a city square, on a lawn, at the roadside, on a roof, beside a wall"""
)
TIMES = words(
    """at dawn, at noon, at sunset, at night, in the rain, in fog, in falling snow, on a sunny day,
    on a cloudy day, in spring, in summer, in autumn, in winter"""
)
INDOORS = words(
    """in a kitchen, in a living room, in a bedroom, in an office, in a workshop, in a museum, in a shop,
    in a classroom, in a garage, in a hallway, in a studio, in a warehouse, in a basement, in a library,
    in a restaurant"""
)
ROOM_LIGHTS = words(
    """in lamplight, in bright light, in dim light, in candlelight, by a window, under bright ceiling lights,
    in a dark corner"""
)
EVENTS = words(
    """at a market, at a festival, at a parade, at a fair, at an exhibition, at a party, at a race, at a show,
    at a wedding, at a picnic, at a school, at an airport, at a station, at a harbor, at a farm,
    at a factory, at a building site, at a playground, at a stadium, at a camp"""
)
EVENT_TIMES = words("by day, at night, in a crowd, on a quiet day")
LIGHTS = words(
    """in bright sunlight, in soft morning light, in evening light, in dim light, in candlelight,
    in moonlight, under a street lamp, in the shade, against the light, in warm light, in cold light,
    in even light, under a spotlight, under neon lights, in harsh light, in colored light, in hazy light,
    in twilight"""
)
SKIES = words("blue, cloudy, grey, stormy, pink, orange, starry, clear, pale, dark")
WETNESS = words("rain, dew, the sea, melting snow, a garden hose")

# How it is looked at
VIEWS = words(
    """from the side, from the front, from above, from behind, from far away, up close, in the center,
    on the left, on the right, at an angle, in a corner, upside down"""
)
VIEWPOINTS = words(
    """from the side, from the front, from above, from behind, from far away, up close, at an angle,
    from below, at eye level, from the left, from the right, through a window, through a fence, in profile,
    from the ground, across a room"""
)
FLAWS = words(
    """out of focus, overexposed, too dark, blurred by motion, grainy, badly cropped, washed out,
    high in contrast, low in contrast, tilted, low in resolution, full of noise"""
)
FLAW_VIEWS = words(
    "from the side, from the front, from above, from behind, from far away, up close, from below, at an angle"
)
CAMERAS = words(
    """a phone, an old camera, a wide-angle lens, a long lens, a macro lens, black and white film,
    a security camera, an instant camera, a fisheye lens, a cheap camera"""
)
CAMERA_TIMES = words("in daylight, at night, indoors, outdoors, at dusk, on a cloudy day")
FRAME_PARTS = words(
    """the whole picture, half of the picture, the left half, the right half, the upper half, the lower half,
    the foreground, the background, a corner of the picture, the center of the picture"""
)
FRAME_EDGES = words("the top, the bottom, the left edge, the right edge")
FRAME_SIZES = words("small, large, tiny")
FRAME_PLACES = words(
    """in the upper left, in the upper right, in the lower left, in the lower right, in the middle,
    at the top, at the bottom, near the left edge, near the right edge"""
)
BACKDROP_TONES = words("plain, blurred, dark, bright, colorful, white, black, grey, blue, green, red, yellow")
BACKDROPS = words("background, wall, curtain")
FRAMINGS = words("centered, cut out, isolated, repeated, floating, standing alone")

# Beside what, and how many
COUNTS = words(
    """alone, next to another one, part of a pair, part of a group, the only thing in the picture,
    partly hidden"""
)
SUPPORTS = words(
    """a wooden table, a glass table, a white tablecloth, a shelf, a desk, a carpet, a tiled floor,
    a stone floor, a bench, a tray, a blanket, a cushion, a stack of books, a newspaper, a cutting board,
    gravel, a mat, a workbench, a window sill, a marble counter"""
)
SMALL_THINGS = words(
    "a cup, a book, a plant, a lamp, a coin, a pencil, a phone, a bowl, a ruler, some flowers"
)
RELATIONS = words("next to, in front of, partly hidden behind, seen beyond")
BIG_THINGS = words(
    """a person, a wall, a tree, a fence, a door, a window, a bench, a child, a bicycle, a chair, a lamp post,
    a rock, a sign, a building, a large box, a bush, a ladder, a parked car"""
)
COMPANY = words(
    """people, trees, flowers, books, boxes, tools, toys, buildings, cars, water, rocks, fallen leaves,
    tall grass, snow, small stones, potted plants, candles, signs"""
)
COMPANY_VIEWS = words("from above, up close, from far away, at eye level")
MANY = words("three, four, five, six, ten, many, very many")
ARRANGED = words("in a row, in a circle, in a pile, in a grid, side by side, by size")
SEVERAL = words("two, three, several, many, different")
VARIETIES = words("sizes, shapes, colors, styles, patterns, materials")

# States and what happens to it
AMOUNTS = words("lightly, half, completely")
COVERINGS = words(
    """dust, snow, frost, mud, leaves, paint, ice, moss, flowers, water drops, sand, cobwebs, stickers, ash,
    foam, writing"""
)
EXTENTS = words("slightly, badly, partly")
DAMAGES = words(
    "broken, cracked, torn, bent, scratched, dented, chipped, faded, stained, burnt, worn, crushed"
)
WRAPPINGS = words("paper, foil, cloth, clear plastic, string, a blanket, leaves, ribbon")
ACTIONS = words(
    """moving fast, moving slowly, standing still, falling, floating, spinning, rolling, swinging,
    leaning on something, hanging from a hook, hanging from a branch, hanging from a rope,
    hanging from the ceiling, hanging on a wall, held in a hand, held by a child, carried by a person,
    pulled by a rope, tied to a post, behind glass, behind bars, in a box, in a bag, in a basket,
    in a frame, in a display case, on a pedestal, on a stand, on wheels, on a string, on display, for sale,
    in use, in storage, being cleaned, being repaired, being measured, being painted, being moved,
    being unpacked"""
)
POSES = words("moving, leaning, pointing, turned, tilted, facing")
DIRECTIONS = words("to the left, to the right, toward the viewer, away from the viewer, upward, downward")
SHADOWS = words("long, short, soft, sharp, faint, blue")
GROUNDS = words("the ground, a wall, the floor, the grass, the snow, the sand, a table, the road")
MANNER = words("clearly, faintly, partly")
MIRRORS = words(
    """a mirror, still water, a window, a puddle, polished metal, a pair of glasses, a wet road,
    a glass table"""
)
LAMP_SIDES = words("the left, the right, above, below, behind, the front")
LAMPS = words("a lamp, a spotlight, colored light")
SUN_SIDES = words("the left, the right, behind, above")
IMPRESSIONS = words(
    """old-fashioned, modern, futuristic, antique, handmade, homemade, ordinary, unusual, cheerful, elegant,
    friendly, serious, cute, cheap, expensive, playful, calm, scary, sad, happy, strange, heavy, light,
    fragile, sturdy, realistic, abstract, unfinished, magical, official"""
)
ERAS = IMPRESSIONS[:8]
MOODS = IMPRESSIONS[8:17]

# Pictures of it
MANNERS = words(
    """drawn with a pencil, drawn with thick lines, drawn in outline, painted in watercolor,
    painted in bright colors, shown as a cartoon, shown as clip art, shown as an icon, shown as pixel art,
    shown in a photo, shown in a sketch, shown in flat colors, printed on paper, drawn by hand,
    drawn by a child, seen in black and white, made of simple shapes, made of small squares,
    taken with a camera, shown in an illustration"""
)
PENS = words(
    """a pencil, charcoal, ink, crayons, a ballpoint pen, a marker, colored pencils, pastels, a brush pen,
    a quill"""
)
PAPERS = words(
    "white paper, brown paper, grey paper, lined paper, a napkin, a notebook page, cardboard, an envelope"
)
CHALKED = words("a blackboard, the pavement, a brick wall, a slate")
PAINTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("oil paint", words("canvas, wood, cardboard")),
    ("watercolor", words("white paper, rough paper, silk")),
    ("acrylic paint", words("canvas, wood, glass, a wall")),
    ("spray paint", words("a wall, a train, a garage door, canvas")),
    ("ink", words("rice paper, silk, parchment")),
)
PALETTES = words("bright, pale, dark, warm, cool, muted")
STROKES = words("broad strokes, fine strokes, small dots, thick paint, thin washes, loose lines")
FORMS = words(
    """a cartoon, clip art, an icon, pixel art, a silhouette, a line drawing, a logo, a sticker,
    a postage stamp, a mosaic, a stencil, a poster, a comic panel, a woodcut, an engraving, a paper cutout,
    a doodle, a diagram, a 3d rendering, a wireframe, a stained glass window, a tattoo, embroidery,
    graffiti"""
)
SCHEMES = words(
    """black and white, bright colors, pastel colors, two colors, shades of blue, shades of grey, earth tones,
    neon colors, gold and black"""
)
PRINTED = words(
    """a t-shirt, a mug, a poster, a postcard, a bag, a box, a banner, a book cover, a calendar,
    a greeting card, a playing card, a magazine page, a sign, a plate, a pillow, a phone case, a flag,
    a label, a towel, a billboard"""
)
INKS = words("in one color, in full color, in black, in faded ink, in gold")
OLD_MEDIA = words(
    "a photograph, a newspaper, a magazine, a textbook, a catalog, an advertisement, a postcard, a poster"
)
OLD_TIMES = words("the 1900s, the 1920s, the 1950s, the 1970s")
NEW_MEDIA = words("a video, a video game, a web page, a slide show, a television program, a music video")
NEW_TIMES = words("the 1990s, the 2000s, the 2010s")
