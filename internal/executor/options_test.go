// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// While keys are changed, the file of the keys of before holds the private half of the last
// one. Whatever it holds, public halves alone are published.
func TestTheKeysOfBeforeMayHoldAPrivateHalfThatIsNotPublished(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, texts ...[]byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, slices.Concat(texts...), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	private, public := make([][]byte, 3), make([][]byte, 3)
	for i := range private {
		var err error
		if private[i], public[i], err = evidence.GenerateKey(); err != nil {
			t.Fatal(err)
		}
	}
	own := write("key.pem", private[0])
	for name, test := range map[string]struct {
		old  string
		want string // the published keys
		sign int    // keys that sign who succeeds them
	}{
		"no key of before":           {"", string(public[0]), 0},
		"a public one":               {write("public.pem", public[1]), string(public[0]) + string(public[1]), 0},
		"a private one":              {write("private.pem", private[1]), string(public[0]) + string(public[1]), 1},
		"both halves of one":         {write("halves.pem", private[1], public[1]), string(public[0]) + string(public[1]), 1},
		"a private and a public one": {write("both.pem", private[2], public[1]), string(public[0]) + string(public[2]) + string(public[1]), 1},
		"the own key":                {write("own.pem", private[0]), string(public[0]), 1},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := (&Options{EvidenceKeyFile: own, EvidenceOldKeysFile: test.old}).Keys()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(keys.Public)); diff != "" || strings.Contains(string(keys.Public), "PRIVATE") {
				t.Errorf("published (-want +got):\n%s", diff)
			}
			if len(keys.Old) != test.sign || len(keys.Ring.IDs()) != strings.Count(test.want, "BEGIN") {
				t.Errorf("%d keys sign who succeeds them, %d are believed", len(keys.Old), len(keys.Ring.IDs()))
			}
		})
	}
	for name, o := range map[string]*Options{
		"no key":                  {EvidenceKeyFile: filepath.Join(dir, "none")},
		"a key that is none":      {EvidenceKeyFile: write("odd.pem", []byte("key"))},
		"no key of before there":  {EvidenceKeyFile: own, EvidenceOldKeysFile: filepath.Join(dir, "none")},
		"a file without a key":    {EvidenceKeyFile: own, EvidenceOldKeysFile: write("empty.pem")},
		"a block of another type": {EvidenceKeyFile: own, EvidenceOldKeysFile: write("odd-old.pem", []byte(strings.ReplaceAll(string(public[1]), "PUBLIC KEY", "CERTIFICATE")))},
		"a damaged private key":   {EvidenceKeyFile: own, EvidenceOldKeysFile: write("damaged.pem", []byte(strings.ReplaceAll(string(public[1]), "PUBLIC KEY", "PRIVATE KEY")))},
	} {
		if keys, err := o.Keys(); err == nil {
			t.Errorf("%s: got %+v", name, keys)
		}
	}
}
