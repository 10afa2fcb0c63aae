// SPDX-License-Identifier: Apache-2.0

package component

import (
	"strings"
	"testing"
)

const (
	digest   = " --hash=sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	ofPython = "thing==1.2.3" + digest
	ofX86    = `part==4.5 ; platform_machine == "x86_64"` + digest + digest
	ofArm    = `part==4.5 ; platform_machine == "aarch64"` + digest
)

func sampleEnvironment(lines ...string) (Source, error) {
	files, _ := sampleWheel(lines...)
	return Load(files, Component{Name: "thing", Wheel: "thing", Environment: true, Binaries: []Binary{{Package: "thing.server", Name: "thing"}}})
}

func TestAnEnvironmentIsForTheMachinesThatAllOfItIsPinnedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		lines    []string
		x86, arm bool
	}{
		"Python alone":                   {[]string{"# a comment", "", ofPython}, true, true},
		"compiled code for both":         {[]string{ofPython, ofX86, ofArm}, true, true},
		"compiled code for one":          {[]string{ofPython, ofX86}, true, false},
		"compiled code for another one":  {[]string{ofPython, strings.Replace(ofX86, "x86_64", "vax", 1)}, false, false},
		"two distributions for one each": {[]string{ofPython, ofX86, strings.Replace(ofArm, "part", "other", 1)}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			source, err := sampleEnvironment(tc.lines...)
			if err != nil || source.Version != "v1.2.3" {
				t.Fatalf("version %q (%v)", source.Version, err)
			}
			for arch, want := range map[string]bool{"amd64": tc.x86, "arm64": tc.arm} {
				if err := source.CheckTarget(Target{OS: "linux", Arch: arch}); (err == nil) != want {
					t.Errorf("%s: %v, want it pinned: %v", arch, err, want)
				}
			}
		})
	}
}

func TestLoadRefusesAnEnvironment(t *testing.T) {
	for name, tc := range map[string]struct{ lines, want string }{
		"that nothing pins":                  {ofX86, "does not pin thing"},
		"without a digest":                   {"thing==1.2.3", "a digest"},
		"with half a digest":                 {ofPython[:len(ofPython)-1], "a digest"},
		"without an exact version":           {strings.Replace(ofPython, "==", ">=", 1), "to a version"},
		"from a registry of its own":         {"--index-url example.test\n" + ofPython, "does not pin"},
		"with two versions":                  {ofX86 + "\n" + strings.Replace(ofArm, "4.5", "4.6", 1), "to both 4.5 and 4.6"},
		"with two pins for a machine":        {ofX86 + "\n" + ofX86, "part twice"},
		"with a pin for all machines beside": {ofX86 + "\n" + "part==4.5" + digest, "part twice"},
		"with a pin for one machine beside":  {"part==4.5" + digest + "\n" + ofX86, "part twice"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := sampleEnvironment(tc.lines); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
