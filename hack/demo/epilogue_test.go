// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness"
)

func TestEpilogue_SaysHowToRemoveWhatIsWhose(t *testing.T) {
	tests := map[string]struct {
		admin  *harness.Cluster
		o      options
		says   []string
		silent []string
	}{
		"the local cluster goes as a whole": {
			&harness.Cluster{Kubeconfig: "/state/admin", Path: "/bin/path"}, options{cluster: "local"},
			[]string{"export KUBECONFIG=/state/admin PATH=/bin/path:$PATH", "`make cluster-down`"},
			[]string{"helm uninstall", "stay in the registry"},
		},
		"somebody's cluster stays, and the demo's things go": {
			&harness.Cluster{Path: "/bin/path"}, options{cluster: "current", registry: "ghcr.io/me"},
			append(cleanUp(), "  export PATH=/bin/path:$PATH", "ghcr.io/me/plumbline/* stay in the registry"),
			[]string{"cluster-down", "KUBECONFIG="},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			newNarrator(&out).epilogue(tc.admin, tc.o)
			for _, want := range tc.says {
				if !strings.Contains(out.String(), want) {
					t.Errorf("it does not say %q:\n%s", want, out.String())
				}
			}
			for _, not := range tc.silent {
				if strings.Contains(out.String(), not) {
					t.Errorf("it says %q:\n%s", not, out.String())
				}
			}
		})
	}
}

// The namespaces that are removed are those that the preflight asks about, and the
// label that the kinds are found by is the one that Helm puts on them.
func TestCleanUp_NamesEveryNamespace(t *testing.T) {
	all := strings.Join(cleanUp(), "\n")
	for _, want := range []string{systemNamespace, shopNamespace, ciNamespace, demoLabel} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not removed by:\n%s", want, all)
		}
	}
	for _, manifest := range []string{systemNamespaceManifest, named(accessManifest), named(pullManifest)} {
		for document := range strings.SplitSeq(manifest, "---") {
			if strings.Contains(document, "kind: Namespace") && !strings.Contains(document, demoLabel+": ") {
				t.Errorf("a namespace without the label is not the demo's at its next run:%s", document)
			}
		}
	}
}
