/** GraphiQL in a headless Chromium that knows no other machine than this one. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { chromium, type Page } from 'playwright-core';

const browser = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  path => path && existsSync(path),
);
/** Why there is nothing to test in; false where there is. */
export const noBrowser = browser ? false : 'there is no Chromium here; CHROMIUM can name one';
/** A folder to leave pictures in. */
const pictures = process.env.SCREENSHOTS;

/** A page, what it complained about, and whom it asked. */
export async function openBrowser(t: TestContext) {
  const profile = await mkdtemp(join(tmpdir(), 'graphiql-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: browser as string,
    headless: true,
    viewport: { width: 1440, height: 900 },
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
    ],
  });
  const page = context.pages()[0] ?? (await context.newPage());
  t.after(async () => {
    await picture(page, 'end');
    await context.close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  });
  const complaints: string[] = [];
  const asked: string[] = [];
  page.on('console', message => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', error => complaints.push(error.message));
  page.on('requestfailed', request => complaints.push(`${request.url()}: ${request.failure()?.errorText}`));
  page.on('request', request => asked.push(request.url()));
  page.on('websocket', socket => asked.push(socket.url()));
  return { page, complaints, asked };
}

const executeButton = (page: Page) => page.getByRole('button', { name: /^Execute query/ });

/** Until there is something to press. */
export async function openGraphiql(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await executeButton(page).waitFor({ timeout: 20_000 });
}

/** Waits until the result has a line with each of these. */
export async function shown(page: Page, ...lines: RegExp[]): Promise<void> {
  for (const line of lines) {
    await page.locator('.result-window .view-line').filter({ hasText: line }).first().waitFor({ timeout: 20_000 });
  }
}

export const run = (page: Page) => executeButton(page).click();

/** Opens a tab and runs it until the result has that line. */
export async function runTab(page: Page, tab: string, line: RegExp): Promise<void> {
  await page.getByRole('button', { name: tab, exact: true }).click();
  // For a moment after a tab was opened, GraphiQL runs what the one before was named.
  const seen = shown(page, line);
  for (let runs = 0; runs < 20; runs++) {
    // A subscription that has begun can be stopped only.
    if (await executeButton(page).isVisible()) await run(page);
    if (await Promise.race([seen.then(() => true), page.waitForTimeout(250).then(() => false)])) break;
  }
  await seen;
}

export async function picture(page: Page, name: string): Promise<void> {
  if (pictures) await page.screenshot({ path: join(pictures, `graphiql-${name}.png`) });
}
