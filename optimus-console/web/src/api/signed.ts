// How the console knows who reads. Its answers tell it, also to those who are not signed in.

const KEY = "optimus.auth";

export function rememberHow(auth: string): void {
  try {
    sessionStorage.setItem(KEY, auth);
  } catch {
    // A browser without storage offers the field for a token.
  }
}

/** Whether a token may be of use. A console takes none if a proxy or the browser tells who reads. */
export function takesToken(): boolean {
  try {
    const known = sessionStorage.getItem(KEY);
    return known === null || known === "token";
  } catch {
    return true;
  }
}
