// SPDX-License-Identifier: Apache-2.0

package buildinfo

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	recorded := &debug.BuildInfo{
		Main:     debug.Module{Version: "v0.0.0-20260101000000-abcdefabcdef"},
		Settings: []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "abcdef"}},
	}
	cases := map[string]struct {
		version, revision string
		recorded          *debug.BuildInfo
		want              Info
	}{
		"the stamps of a release win":                {"v0.1.0", "123456", recorded, Info{Version: "v0.1.0", Revision: "123456"}},
		"without stamps the toolchain's record does": {"", "", recorded, Info{Version: "v0.0.0-20260101000000-abcdefabcdef", Revision: "abcdef"}},
		"a build without git is of no version":       {"", "", &debug.BuildInfo{}, Info{Version: Unstamped, Revision: "unknown"}},
		"a binary without a record is of no version": {"", "", nil, Info{Version: Unstamped, Revision: "unknown"}},
		"a stamp needs no record":                    {"v0.1.0", "", nil, Info{Version: "v0.1.0", Revision: "unknown"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.GoVersion = runtime.Version()
			if diff := cmp.Diff(tc.want, read(tc.version, tc.revision, tc.recorded)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrintVersion(t *testing.T) {
	cases := map[string]struct {
		args []string
		want bool
	}{
		"--version alone":            {[]string{"--version"}, true},
		"-version alone":             {[]string{"-version"}, true},
		"no argument":                {nil, false},
		"another flag":               {[]string{"--help"}, false},
		"--version beside a flag":    {[]string{"--version", "--x"}, false},
		"--version as a flag's word": {[]string{"--x", "--version"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			answered, err := PrintVersion(tc.args, "webhook", &out)
			if err != nil || answered != tc.want || strings.HasPrefix(out.String(), "webhook "+Read().Version+" (commit ") != tc.want {
				t.Errorf("answered %v (%v): %q", answered, err, &out)
			}
		})
	}
}
