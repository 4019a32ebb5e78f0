/** The words of containers, as far as they may stand in a message. */
import { oneLine } from '../../http.ts';

/** A line of a log without what it must not tell: tokens of the Hub. */
export const safeLine = (line: string) => oneLine(line.replace(/\bhf_\w{8,}/g, 'hf_…'), 300);

/** The lines of a log that say something. Tools that draw their progress end a line with a carriage return only. */
export const linesOf = (log: string): string[] => log.split(/[\r\n]+/).filter(line => line.trim() !== '');

/** The last lines as one. */
export const lastLinesOf = (log: string, count: number): string => linesOf(log).slice(-count).map(safeLine).join(' | ');
