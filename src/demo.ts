export async function runDemo(_argv: string[]) {}
