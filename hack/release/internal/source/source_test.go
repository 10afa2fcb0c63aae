// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseVersion(t *testing.T) {
	cases := map[string]struct {
		text, chart string
		prerelease  bool
		want        string
	}{
		"a version before 1":        {text: "v0.1.0", chart: "0.1.0", prerelease: true},
		"a stable version":          {text: "v1.2.3", chart: "1.2.3"},
		"a release candidate":       {text: "v1.2.3-rc.1", chart: "1.2.3-rc.1", prerelease: true},
		"no version":                {want: "say VERSION=v0.1.0"},
		"a version without its v":   {text: "0.1.0", want: "with a v"},
		"a version of two numbers":  {text: "v0.1", want: "three numbers"},
		"a branch":                  {text: "main", want: "semantic version"},
		"a version with build data": {text: "v0.1.0+abc", want: `cannot hold "+abc"`},
		"a leading zero":            {text: "v0.01.0", want: "semantic version"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			version, err := ParseVersion(tc.text)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v, want %q", err, tc.want)
				}
				return
			}
			if err != nil || version.String() != tc.text || version.Chart() != tc.chart || version.IsPrerelease() != tc.prerelease {
				t.Errorf("%s is %q for the chart, a prerelease: %v (%v)", version, version.Chart(), version.IsPrerelease(), err)
			}
		})
	}
}

// repository has one commit at a known time.
func repository(t *testing.T) (folder string, git func(args ...string)) {
	t.Helper()
	folder = t.TempDir()
	git = func(args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{"-C", folder}, args...)...)
		command.Env = append(os.Environ(), "GIT_COMMITTER_DATE=1767323045 +0000", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@localhost")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, output)
		}
	}
	git("init", "-q")
	write(t, folder, "a", "one")
	git("add", "-A")
	git("commit", "-qm", "one")
	return folder, git
}

func write(t *testing.T, folder, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReadCommit(t *testing.T) {
	version, err := ParseVersion("v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	folder, git := repository(t)
	commit, err := ReadCommit(t.Context(), folder, version, false)
	if want := time.Unix(1767323045, 0); err != nil || !commit.Time.Equal(want) || len(commit.Hash) != 40 || commit.Dirty {
		t.Fatalf("commit %+v (%v), want a clean one of %s", commit, err, want)
	}
	git("tag", version.String())
	if _, err := ReadCommit(t.Context(), folder, version, false); err != nil {
		t.Errorf("a tag on this very commit is refused: %v", err)
	}
	write(t, folder, "b", "two")
	_, err = ReadCommit(t.Context(), folder, version, false)
	if dirty, ok := errors.AsType[*DirtyError](err); !ok || len(dirty.Changes) != 1 || dirty.Changes[0] != "b" {
		t.Errorf("a dirty tree gives %v, want a DirtyError that names b", err)
	}
	if commit, err := ReadCommit(t.Context(), folder, version, true); err != nil || !commit.Dirty {
		t.Errorf("a permitted dirty tree gives %+v (%v)", commit, err)
	}
	git("add", "-A")
	git("commit", "-qm", "two")
	if _, err := ReadCommit(t.Context(), folder, version, false); err == nil || !strings.Contains(err.Error(), "choose another version") {
		t.Errorf("a version whose tag is on another commit gives %v", err)
	}
	if _, err := ReadCommit(t.Context(), t.TempDir(), version, false); err == nil || !strings.Contains(err.Error(), "clone of the repository") {
		t.Errorf("a folder without git gives %v", err)
	}
}
