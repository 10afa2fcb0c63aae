// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cli

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/test/harness/child"
)

// ages makes relative ages, and the column widths that follow from them, alike:
// a test does not know how long it runs.
var ages = cmp.Transformer("ages", func(a answer) answer {
	a.Stdout = agePattern.ReplaceAllString(a.Stdout, "60s")
	a.Stdout = paddingPattern.ReplaceAllString(a.Stdout, "  ")
	return a
})

var (
	agePattern     = regexp.MustCompile(`\b([0-9]+[dhms]){1,2}\b`)
	paddingPattern = regexp.MustCompile(` {2,}`)
)

// kubectl runs the real one, with the plugin on PATH.
func kubectl(t *testing.T, args ...string) answer {
	t.Helper()
	cmd := child.Bind(exec.CommandContext(t.Context(), binDir+"/kubectl", args...))
	cmd.Env = append(os.Environ(), "PATH="+binDir+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig)
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited { //nolint:errorlint // Run returns it bare
		t.Fatal(err)
	}
	return answer{Code: cmd.ProcessState.ExitCode(), Stdout: out.String(), Stderr: errOut.String()}
}

func TestKubectl_RunsThePlugin(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	f.drifted("web")
	got := kubectl(t, "plumbline", "status", "-n", f.namespace, "--no-headers")
	if got.Code != 0 || !strings.HasPrefix(got.Stdout, "deployment.apps/web   Medium") {
		t.Errorf("kubectl plumbline status gave %+v", got)
	}
	if got := kubectl(t, "plumbline", "diff", "deploy/web", "-n", f.namespace); got.Code != 1 {
		t.Errorf("kubectl does not pass on the exit code of diff: %+v", got)
	}
}

func TestKubectl_CompletesGuardedObjects(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	f.drifted("web")
	f.drifted("worker")
	cases := map[string]struct {
		typed []string
		want  string
	}{
		"commands":               {[]string{"sta"}, "status\tShow drifted objects, worst first\n"},
		"types in use":           {[]string{"status", "-n", f.namespace, "dep"}, "deployment/\n"},
		"names after a slash":    {[]string{"blame", "-n", f.namespace, "deploy/w"}, "deploy/web\tDrifted\ndeploy/worker\tDrifted\n"},
		"names after a type":     {[]string{"accept", "-n", f.namespace, "deploy", "wo"}, "worker\tDrifted\n"},
		"namespaces":             {[]string{"status", "-n", f.namespace}, f.namespace + "\n"},
		"values of enumerations": {[]string{"hash", "--algorithm", ""}, "pl1\npl2\nddem002\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := kubectl(t, append([]string{"__complete", "plumbline"}, tc.typed...)...)
			suggested, _, _ := strings.Cut(got.Stdout, ":")
			if diff := cmp.Diff(tc.want, suggested); diff != "" {
				t.Errorf("completions (-want +got):\n%s%s", diff, got.Stderr)
			}
		})
	}
}

func TestUnreachableServer_IsSaidAsKubectlSaysIt(t *testing.T) {
	got := plumbline(t.Context(), kubeconfig, "default", "", "status", "--server", "https://127.0.0.1:1", "--insecure-skip-tls-verify")
	if want := "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?\n"; got.Code != 1 || got.Stderr != want {
		t.Errorf("got %+v, want %q", got, want)
	}
}
