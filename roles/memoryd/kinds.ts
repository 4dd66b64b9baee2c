// What kind of thing a word names, for common English words: so that a question about sports finds a
// text about tennis. A text is indexed under its kinds too, at a low weight; a question is not changed.
// General knowledge, made without any file of questions in view; other languages pass through.

/** Each line: the words that people ask with, then the words that are of that kind. */
const KINDS = `
sport athletic: football soccer basketball baseball softball tennis golf hockey rugby volleyball cricket swim dive ski snowboard surf skate box boxing wrestle karate judo kickboxing taekwondo fencing archery marathon triathlon sprint cycle climb row sail badminton squash gymnastics bowling athlete teammate tournament race league
exercise workout fitness: gym yoga pilates run jog swim weights dumbbell cardio aerobics stretch cycle walk hike dance boxing kickboxing marathon treadmill squat pushup
martial: karate judo kickboxing taekwondo aikido jujitsu kungfu wrestle fencing
hobby activity pastime leisure: paint draw sketch knit crochet sew garden cook bake fish hunt camp hike read write dance sing photography pottery chess puzzle swim run jog yoga guitar piano game collect craft origami woodwork travel surf ski climb museum bowling sculpt kayak sail
outdoor nature: hike camp beach lake river forest wood mountain hill trail park fish kayak canoe picnic climb sunset wildlife waterfall meadow campfire tent
animal pet: dog cat puppy kitten rabbit hamster bird parrot canary turtle tortoise horse pony snake lizard goldfish cow sheep pig goat chicken duck goose bear fox wolf deer lion tiger elephant monkey frog bee dolphin whale owl squirrel
family relative: mother mom mum father dad parent sister brother sibling son daughter wife husband grandmother grandma grandfather grandpa grandparent aunt uncle cousin niece nephew child kid baby toddler twin
child kid: son daughter baby toddler teenager boy girl twin
partner relationship marriage marital romantic: wife husband boyfriend girlfriend spouse fiance wedding date single divorce breakup engage marry widow anniversary
friend: neighbour neighbor colleague coworker workmate roommate flatmate classmate schoolmate teammate buddy pal
food dish meal cuisine eat cook: pizza pasta spaghetti bread toast rice soup stew salad burger sandwich cheese chicken beef pork lamb fish salmon shrimp sushi curry noodle dumpling egg omelette pancake potato fries steak taco burrito sausage bacon lasagna breakfast lunch dinner supper brunch barbecue restaurant recipe dessert cake cookie
dessert sweet snack: cake cupcake cookie pie chocolate candy pudding muffin brownie pastry doughnut icecream cheesecake
fruit: apple banana orange grape berry strawberry blueberry raspberry peach plum pear cherry lemon lime mango pineapple melon watermelon apricot fig
vegetable: tomato carrot potato onion garlic lettuce spinach broccoli cauliflower cabbage kale pepper cucumber zucchini bean pea pumpkin celery
drink beverage: coffee espresso tea beer wine champagne juice milk soda cola cocktail whisky vodka gin rum lemonade smoothie water
instrument: guitar bass piano violin viola cello drum flute clarinet oboe saxophone trumpet trombone harp ukulele banjo accordion keyboard harmonica
music musical musician: song concert band album sing singer guitar piano violin drum choir orchestra jazz rock pop rap blues melody tune gig lyric playlist opera symphony
art artist creative: paint draw sculpture sculpt pottery ceramic sketch canvas gallery portrait mural watercolor photography drawing collage
book literature reading: novel author read reader story poem poetry fiction fantasy mystery thriller chapter biography memoir library bookstore bookshop trilogy series writer
movie film show: cinema actor actress director scene screenplay theater comedy drama thriller documentary cartoon trilogy sequel television series episode netflix
game: chess poker puzzle console nintendo playstation xbox tournament videogame card dice checkers scrabble monopoly quest
device gadget technology electronic: phone laptop computer tablet camera printer headphone smartphone console television watch drone keyboard monitor router speaker robot
computer software programming: code program app website server database bug python java javascript linux windows developer programmer algorithm
city town: london paris berlin rome madrid vienna amsterdam tokyo kyoto osaka seoul beijing shanghai singapore delhi mumbai sydney melbourne toronto vancouver montreal chicago boston seattle denver miami houston dallas philadelphia phoenix atlanta portland barcelona dublin edinburgh lisbon prague budapest warsaw athens stockholm oslo copenhagen helsinki brussels zurich geneva munich hamburg milan venice florence moscow istanbul dubai cairo nairobi
country nation abroad: england britain france germany italy spain portugal ireland scotland wales sweden norway denmark finland iceland poland greece turkey russia ukraine china japan korea india thailand vietnam indonesia philippines australia zealand canada mexico brazil argentina chile colombia peru cuba egypt kenya morocco nigeria netherlands holland belgium switzerland austria hungary croatia israel america usa uk
state: california texas florida oregon nevada arizona colorado utah montana idaho wyoming alaska hawaii minnesota michigan ohio illinois indiana wisconsin iowa kansas missouri virginia carolina tennessee kentucky alabama louisiana maine vermont massachusetts connecticut pennsylvania maryland
continent: europe asia africa america australia antarctica
place location where destination: city town village country island beach park museum lake mountain hotel restaurant cafe church castle shop airport station london paris rome tokyo europe asia africa california france italy spain japan
travel trip vacation holiday visit: flight hotel airport abroad tour roadtrip cruise passport luggage suitcase journey sightseeing backpack destination fly
color colour: red blue green yellow black white purple violet pink brown gray grey orange turquoise
vehicle transport: car bus train bike bicycle motorcycle motorbike scooter truck van boat ship ferry plane tram taxi subway tractor
job work occupation career profession: teacher doctor nurse dentist engineer lawyer manager designer programmer developer chef waiter waitress mechanic electrician plumber carpenter pilot police officer soldier accountant clerk secretary writer journalist musician actor scientist photographer counselor therapist farmer baker barber boss salary office company business promote promotion intern internship hire resign fire retire freelance startup shift
education school degree study academic: university college class course exam graduate student teacher professor lecture homework diploma semester campus thesis scholarship kindergarten lesson major
religion religious faith spiritual: church pray prayer god bible mosque temple synagogue christian catholic muslim jewish buddhist hindu priest pastor worship faith
volunteer charity cause: shelter donate donation fundraiser homeless drive orphanage nonprofit poverty foodbank
event occasion: concert party wedding festival parade conference meeting ceremony fair tournament fundraiser exhibition birthday marathon gala workshop reunion funeral graduation seminar
celebrate holiday: christmas easter halloween thanksgiving birthday anniversary hanukkah
health medical illness injury: doctor hospital clinic sick ill hurt pain ache surgery medicine pill flu fever cold cough allergy allergic asthma diabetes cancer therapy diet weight sprain fracture headache migraine
mental stress: anxiety depression therapy therapist counselor counseling meditate meditation burnout overwhelm
emotion feeling mood: happy sad angry excited proud nervous scared afraid anxious grateful lonely upset joy stress disappoint frustrate relieved jealous
personality trait character attribute quality: kind brave honest generous thoughtful caring confident patient creative strong driven determined loyal funny shy calm curious stubborn ambitious
clothing clothes wear fashion: shirt dress shoe sneaker boot hat cap coat jacket jeans trousers skirt sweater scarf sock glove suit tie
jewelry accessory: necklace ring bracelet earring pendant brooch watch
money finance financial economic: salary loan debt bank pay rent price cost budget invest expensive afford income mortgage wealthy rich poor savings tax insurance
plant flower: flower tree rose tulip daisy sunflower orchid lily lavender cactus herb basil garden
furniture: table chair sofa couch bed desk shelf lamp drawer wardrobe bookcase
tool: hammer drill saw screwdriver wrench ladder
home house live: apartment flat kitchen bedroom bathroom garage rent mortgage neighborhood move roof landlord tenant condo
weather: rain snow sun storm wind cloud fog thunder hurricane heatwave flood
season: spring summer autumn fall winter
politics political government: election vote mayor campaign senator president minister policy candidate parliament council law
goal plan dream future: hope aim wish someday ambition
problem difficulty challenge setback: struggle hard tough trouble issue fail failure obstacle
gift present: birthday bouquet voucher
toy: doll teddy lego puzzle kite ball
science subject: research experiment lab physics chemistry biology mathematics math history geography economics
military: army navy soldier veteran sergeant
`;

const KINDS_OF: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  [...Map.groupBy(
    KINDS.trim().split("\n").flatMap((line) => {
      const [kinds = "", members = ""] = line.split(": ");
      return members.split(" ").map((member) => ({ member, kinds: kinds.split(" ") }));
    }),
    ({ member }) => member,
  )].map(([member, lines]) => [member, new Set(lines.flatMap(({ kinds }) => kinds))]),
);

/** The word itself, and what it may be an ending's form of. */
function formsOf(token: string): string[] {
  const bare = token.replace(/(?:ing|ed|es|s)$/, "");
  if (bare === token || bare.length < 3) return [token];
  const undoubled = bare.replace(/(.)\1$/, "$1");
  return [token, bare, `${bare}e`, token.slice(0, -1), bare.replace(/ie?$/, "y"), undoubled];
}

/** The kinds of the things that folded tokens name, each once. */
export function kindsOf(tokens: readonly string[]): string[] {
  const known = tokens.map((token) => formsOf(token).find((form) => KINDS_OF.has(form)) ?? "");
  return [...new Set(known.flatMap((form) => [...KINDS_OF.get(form) ?? []]))];
}
