// SPDX-License-Identifier: Apache-2.0

//go:build integration

package haproxy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/haproxy"
)

// ofUser is a configuration that names a backend of ours.
const ofUser = `defaults
  mode http
  timeout connect 1s
  timeout client 10s
  timeout server 10s
frontend web
  bind 127.0.0.1:1
  default_backend plb_shop_web_80
`

// unpack writes the files of a golden set, and returns the configurations in the order of loading.
func unpack(t *testing.T, set string) []string {
	t.Helper()
	text, err := os.ReadFile(set)
	must(t, err)
	folder := t.TempDir()
	for _, part := range strings.Split("\n"+strings.ReplaceAll(string(text), "/plumbline/", folder+"/"), "\n-- ")[1:] {
		name, content, _ := strings.Cut(part, " --\n")
		must(t, os.WriteFile(filepath.Join(folder, name), []byte(content+"\n"), 0o600))
	}
	user := filepath.Join(folder, "user.cfg")
	must(t, os.WriteFile(user, []byte(ofUser), 0o600))
	return []string{user, filepath.Join(folder, "plumbline.cfg")}
}

func TestHAProxyAcceptsEveryGoldenSet(t *testing.T) {
	sets, err := filepath.Glob("../../../internal/connector/haproxy/testdata/*.txt")
	must(t, err)
	if len(sets) < 10 {
		t.Fatalf("there are %d golden sets", len(sets))
	}
	for _, set := range sets {
		name := strings.TrimSuffix(filepath.Base(set), ".txt")
		t.Run(name, func(t *testing.T) {
			files := unpack(t, set)
			if name == "no-ports" {
				files = files[1:] // the user's backend is not there
				must(t, os.WriteFile(files[0], append([]byte("frontend a\n bind 127.0.0.1:1\n mode http\n timeout client 1s\n"), read(t, files[0])...), 0o600))
			}
			if said, err := haproxy.Check(t, files...); err != nil || strings.Contains(said, "WARNING") || strings.Contains(said, "deprecated") {
				t.Errorf("%v\n%s", err, said)
			}
		})
	}
}

// Without it the test above could pass whatever it is given.
func TestHAProxyRefusesWhatCannotBe(t *testing.T) {
	const set = "../../../internal/connector/haproxy/testdata/split-by-header.txt"
	for name, change := range map[string][2]string{
		"a converter that is none":    {"xxh64(0)", "xxh65(0)"},
		"a backend that is not there": {"use_backend plb_shop_web_80_canary", "use_backend plb_shop_web_80_other"},
		"a map that is not there":     {"splits.map", "other.map"},
	} {
		t.Run(name, func(t *testing.T) {
			files := unpack(t, set)
			config := string(read(t, files[1]))
			if !strings.Contains(config, change[0]) {
				t.Fatalf("the set has no %s", change[0])
			}
			must(t, os.WriteFile(files[1], []byte(strings.Replace(config, change[0], change[1], 1)), 0o600))
			if said, err := haproxy.Check(t, files...); err == nil {
				t.Errorf("it is accepted:\n%s", said)
			}
		})
	}
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	return text
}
