// What search knows of English beyond its endings, which FTS5's Porter stemmer strips: irregular
// forms, and words that a question holds for its grammar's sake. Other languages pass through.

/** Each line of thought: a word, then the forms that no rule makes from it. */
const IRREGULAR =
  "arise arose arisen,become became,begin began begun,bend bent,bite bit bitten,blow blew blown," +
  "break broke broken,bring brought,build built,burn burnt,buy bought,catch caught,choose chose " +
  "chosen,come came,cling clung,creep crept,deal dealt,dig dug,draw drew drawn,dream dreamt,drink " +
  "drank drunk,drive drove driven,eat ate eaten,fall fell fallen,feed fed,feel felt,fight fought," +
  "find found,flee fled,fly flew flown,forbid forbade forbidden,forget forgot forgotten,forgive " +
  "forgave forgiven,freeze froze frozen,get got gotten,give gave given,go went gone,grow grew " +
  "grown,hang hung,hear heard,hide hid hidden,hold held,keep kept,kneel knelt,know knew known,lay " +
  "laid,lead led,lean leant,learn learnt,leave left,lend lent,lose lost,make made,mean meant,meet " +
  "met,pay paid,ride rode ridden,ring rang rung,rise rose risen,run ran,say said,see saw seen,seek " +
  "sought,sell sold,send sent,sew sewn,shake shook shaken,shine shone,shoot shot,show shown,shrink " +
  "shrank shrunk,sing sang sung,sink sank sunk,sit sat,sleep slept,slide slid,speak spoke spoken," +
  "spell spelt,spend spent,spill spilt,spin spun,spring sprang sprung,stand stood,steal stole " +
  "stolen,stick stuck,sting stung,strike struck,swear swore sworn,sweep swept,swell swollen,swim " +
  "swam swum,swing swung,take took taken,teach taught,tear tore torn,tell told,think thought,throw " +
  "threw thrown,understand understood,wake woke woken,wear wore worn,weave wove woven,weep wept," +
  "win won,write wrote written,child children,person people,man men,woman women,foot feet,tooth " +
  "teeth,goose geese,mouse mice,life lives,wife wives,knife knives,leaf leaves,loaf loaves,shelf " +
  "shelves,thief thieves,wolf wolves,half halves,good better best,bad worse worst";

const BASE_FORMS: ReadonlyMap<string, string> = new Map(
  IRREGULAR.split(",").flatMap((line) => {
    const [base = "", ...forms] = line.split(" ");
    return forms.map((form): [string, string] => [form, base]);
  }),
);

/** The word that a folded token is a form of, as far as no rule of endings says so. */
export function baseForm(token: string): string {
  return BASE_FORMS.get(token) ?? token;
}

/** Words that are in nearly every sentence or question and say nothing about its subject. */
export const STOP_WORDS: ReadonlySet<string> = new Set(
  ("a about after all also am an and any are as at be because been before being both but by can " +
    "could d did do does doing don done for from had has have having he her here hers him his how i if " +
    "in into is it its just kind likely ll m many me mention mentioned might more most much my no " +
    "nor not of off on once only or other our out over own re s same she should so some sort such t " +
    "than that the their them then there these they this those through to too type under until up " +
    "us ve very was we were what when where which while who whom why will with would you your")
    .split(" "),
);
