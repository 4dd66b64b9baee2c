// A small static C program for an image of run_command: prints its arguments, its folder and its input,
// and tries what the container must refuse. Null where no C compiler is.
const SOURCE = `
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv) {
  char here[4096], line[4096];
  for (int i = 1; i < argc; i++) printf("arg %s\\n", argv[i]);
  printf("cwd %s\\n", getcwd(here, sizeof here) ? here : "?");
  for (char **e = environ; *e; e++) printf("env %s\\n", *e);
  while (fgets(line, sizeof line, stdin)) printf("in %s", line);
  printf("socket %d\\n", socket(AF_INET, SOCK_STREAM, 0) < 0 ? errno : 0);
  int made = open("made", O_CREAT | O_WRONLY, 0600);
  printf("write %d\\n", made < 0 ? errno : 0);
  fprintf(stderr, "to stderr\\n");
  return argc > 1 && strcmp(argv[1], "fail") == 0 ? 7 : 0;
}
`;

/** The program's bytes, or null. */
export async function argvProgram(): Promise<Uint8Array<ArrayBuffer> | null> {
  const folder = await Deno.makeTempDir({ prefix: "bx-c-" });
  try {
    await Deno.writeTextFile(`${folder}/p.c`, SOURCE);
    const args = ["-static", "-Os", "-s", "-o", `${folder}/p`, `${folder}/p.c`];
    const { success } = await new Deno.Command("/usr/bin/gcc", {
      args,
      clearEnv: true,
      env: { PATH: "/usr/bin:/bin" },
    }).output();
    return success ? await Deno.readFile(`${folder}/p`) : null;
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return null;
    throw thrown;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
