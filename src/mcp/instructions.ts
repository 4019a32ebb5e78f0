/** What an agent is told before it sees the tools. A sentence about a tool is only said where there is that tool. */
const sentences: readonly { readonly about?: readonly string[]; readonly text: string }[] = [
  {
    text: 'Manages the models of the backends that run them (Ollama, Lemonade, LM Studio, KServe): what there is, what is in memory, and on which machines.',
  },
  {
    about: ['list_backends'],
    text: 'Call list_backends first: its capabilities say what can be done on which backend, and a backend that is down says why.',
  },
  { about: ['add_backend'], text: 'The list of backends may be empty; add_backend adds one.' },
  {
    text: 'Name the `backend` where several have a model of the same reference; without it such a call is refused as a conflict.',
  },
  {
    about: ['pull_model', 'get_job'],
    text: 'Downloads take long: pull_model answers with a job at once, and get_job tells how far it is.',
  },
  {
    about: ['list_presets', 'search_models', 'check_fit', 'explain_fit', 'list_nodes'],
    text: 'On kserve, look before you load: list_presets and search_models find what can be served, check_fit says whether and where it fits, explain_fit why not and what would change it, list_nodes shows the machines.',
  },
  { text: 'A refusal begins with its code and a colon, such as `not_found:`; the sentence after it says what to do.' },
];

/** The instructions of a server with these tools. */
export function instructionsFor(toolNames: readonly string[]): string {
  const said = sentences.filter(({ about = [] }) => about.every(name => toolNames.includes(name)));
  return said.map(({ text }) => text).join('\n');
}
