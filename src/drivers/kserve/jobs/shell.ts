/** A text as one word of a shell's script. */
export const quotedForShell = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
