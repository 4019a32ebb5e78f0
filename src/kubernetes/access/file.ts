import { readFile, stat } from 'node:fs/promises';

/** A file's text, read again when the file has changed. */
export function createFileText(path: string): () => Promise<string> {
  let text = '';
  let version: string | undefined;
  return async () => {
    const { ino, mtimeMs, size } = await stat(path);
    const found = `${ino} ${mtimeMs} ${size}`;
    if (found !== version) {
      text = await readFile(path, 'utf8');
      version = found;
    }
    return text;
  };
}

/** A token as it stands in a file. Throws when it cannot be sent. */
export function tokenIn(text: string, path: string): string {
  const token = text.trim();
  if (!isToken(token)) throw new Error(`there is no token in ${path}`);
  return token;
}

/** Whether a header can carry it: nothing but visible characters of ASCII. */
export const isToken = (text: string): boolean => /^[\x21-\x7e]+$/.test(text);

/** Why a file cannot be read. */
export function fileWords(path: string, error: unknown): string {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ENOENT':
      return `${path} is not there`;
    case 'EACCES':
      return `${path} may not be read by this user`;
    case 'EISDIR':
      return `${path} is a directory`;
    default:
      return error instanceof Error ? error.message : String(error);
  }
}
