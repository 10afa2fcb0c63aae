// SPDX-License-Identifier: Apache-2.0

//go:build integration

package nginx

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/nginx"
)

const goldens = "../../../internal/connector/nginx/testdata/"

// unpack writes the files of a golden set and a configuration of a user, whose path it returns.
func unpack(t *testing.T, set string, change [2]string) string {
	t.Helper()
	text, err := os.ReadFile(set)
	must(t, err)
	folder, err := os.MkdirTemp("", "nginx") //nolint:usetesting // the path of a socket has at most 107 bytes
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	files := strings.ReplaceAll(strings.ReplaceAll("\n"+string(text), "/plumbline/", folder+"/"), change[0], change[1])
	for _, part := range strings.Split(files, "\n-- ")[1:] {
		name, content, _ := strings.Cut(part, " --\n")
		must(t, os.WriteFile(filepath.Join(folder, name), []byte(content+"\n"), 0o600))
	}
	return writeUser(t, folder, "", "")
}

func TestNginxAcceptsEveryGoldenSet(t *testing.T) {
	sets, err := filepath.Glob(goldens + "*.txt")
	must(t, err)
	if len(sets) < 10 {
		t.Fatalf("there are %d golden sets", len(sets))
	}
	for _, set := range sets {
		t.Run(strings.TrimSuffix(filepath.Base(set), ".txt"), func(t *testing.T) {
			if said, err := nginx.Check(t, unpack(t, set, [2]string{})); err != nil || strings.Contains(said, "[warn]") {
				t.Errorf("%v\n%s", err, said)
			}
		})
	}
}

// Without it the test above could pass whatever it is given.
func TestNginxRefusesWhatCannotBe(t *testing.T) {
	for name, change := range map[string][2]string{
		"a directive that is none":     {"split_clients", "split_client"},
		"a variable that is not there": {"default \"$plb_shop_web_80_header0\"", "default \"$plb_shop_web_80_header7\""},
		"shares above all":             {"5.00%", "105.00%"},
	} {
		t.Run(name, func(t *testing.T) {
			if said, err := nginx.Check(t, unpack(t, goldens+"split-with-forced-requests.txt", change)); err == nil {
				t.Errorf("it is accepted:\n%s", said)
			}
		})
	}
}
