// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMain lets the test binary be the probe, as Gather starts its own executable.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == ProbeCommand {
		os.Exit(Probe(os.Stdout))
	}
	os.Exit(m.Run())
}

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestControlGroups(t *testing.T) {
	cases := map[string]struct {
		files       map[string]string
		version     int
		controllers []string
	}{
		"version 2": {
			map[string]string{"cgroup.controllers": "cpuset cpu io memory pids\n", "cgroup.procs": ""}, 2,
			[]string{"cpuset", "cpu", "io", "memory", "pids"},
		},
		"version 1 with joined controllers": {
			map[string]string{"cpu,cpuacct/cgroup.procs": "", "memory/cgroup.procs": ""}, 1,
			[]string{"cpu", "cpuacct", "memory"},
		},
		"a hybrid counts as version 1": {
			map[string]string{"memory/cgroup.procs": "", "unified/cgroup.procs": "", "unified/cgroup.controllers": ""}, 1,
			[]string{"memory", "unified"},
		},
		"an empty folder is none": {map[string]string{}, 0, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			version, controllers, err := controlGroups(tree(t, tc.files))
			if err != nil || version != tc.version {
				t.Fatalf("version %d, %v; want %d", version, err, tc.version)
			}
			if diff := cmp.Diff(tc.controllers, controllers); diff != "" {
				t.Errorf("controllers (-want +got):\n%s", diff)
			}
		})
	}
	if version, _, err := controlGroups(filepath.Join(t.TempDir(), "absent")); err != nil || version != 0 {
		t.Errorf("a folder that does not exist: version %d, %v; want none", version, err)
	}
}

func TestFreeDiskOfAFolderThatIsYetToBe(t *testing.T) {
	existing := t.TempDir()
	want, err := freeDisk(existing)
	if err != nil || want == 0 {
		t.Fatalf("freeDisk = %d, %v", want, err)
	}
	got, err := freeDisk(filepath.Join(existing, "a", "b"))
	// Other programs write to the same disk meanwhile.
	if err != nil || got < want/2 || got > want*2 {
		t.Errorf("freeDisk of a folder below = %d, %v; want about %d", got, err, want)
	}
}

func TestGatherDescribesThisMachine(t *testing.T) {
	facts, err := Gather(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	_, lookErr := exec.LookPath("go")
	if facts.OS != "linux" || facts.Memory == 0 || facts.FreeDisk == 0 || facts.Commands["go"] != (lookErr == nil) {
		t.Errorf("facts %+v", facts)
	}
	if !facts.Root {
		t.Log("not root: the kernel's features were not tried")
		return
	}
	for _, feature := range []string{FeatureNamespaces, FeatureVeth, FeatureBridge, FeatureOverlay, FeatureNAT} {
		if _, tried := facts.Kernel[feature]; !tried && facts.Kernel[FeatureNamespaces] == "" {
			t.Errorf("feature %q was not tried: %v", feature, facts.Kernel)
		}
	}
	for _, name := range []string{"probe0", "probe1", "probe2"} {
		if _, err := os.Stat("/sys/class/net/" + name); err == nil {
			t.Errorf("the probe left the link %s on the host", name)
		}
	}
}

func TestProbeRefusesToTouchTheHost(t *testing.T) {
	var out bytes.Buffer
	if status := Probe(&out); status == 0 || !strings.Contains(out.String(), "cluster preflight") {
		t.Errorf("status %d, %q", status, out.String())
	}
}

func TestForbidDaemons(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy-rc.d")
	restore, err := forbidDaemons(path)
	if err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := exec.CommandContext(t.Context(), path, "redis-server", "start").Run(); !errors.As(err, &exit) || exit.ExitCode() != 101 {
		t.Errorf("the policy answers %v, want status 101", err)
	}
	restore()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the policy stayed (%v)", err)
	}
}

func TestForbidDaemonsKeepsTheMachinesOwnPolicy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy-rc.d")
	if err := os.WriteFile(path, []byte("mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	restore, err := forbidDaemons(path)
	if err != nil {
		t.Fatal(err)
	}
	restore()
	if data, err := os.ReadFile(path); err != nil || string(data) != "mine" {
		t.Errorf("the policy became %q (%v)", data, err)
	}
}
