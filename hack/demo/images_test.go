// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Pods of CLUSTER=current waited for registry/webhook:dev while the push had put
// registry/plumbline/webhook:dev there.
func TestRegistryOf_IsWhereThePushPutsTheImages(t *testing.T) {
	tests := map[string]struct {
		registry string
		want     string
	}{
		"no registry: as loaded into the local cluster": {"", "docker.io/plumbline"},
		"a registry":                         {"ghcr.io/me", "ghcr.io/me/plumbline"},
		"a registry with a slash at the end": {"localhost:5000/", "localhost:5000/plumbline"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, registryOf(options{registry: tc.registry})); diff != "" {
				t.Errorf("registryOf (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOptions_RefuseAClusterThatCannotPull(t *testing.T) {
	tests := map[string]struct {
		options options
		want    string
	}{
		"current without a registry": {options{cluster: "current"}, "needs --registry"},
		"an unknown cluster":         {options{cluster: "kind"}, "want local or current"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := tc.options.validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("validate() = %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestRelease_NamesEveryServiceAndNoPlaceholder(t *testing.T) {
	manifest := release("docker.io/plumbline/shop:dev", "1.0") + named(accessManifest) + named(guardManifest)
	for _, want := range []string{"name: web\n", "{name: SHOP_NAME, value: web}", "{name: SHOP_NAME, value: cart-audit}", `value: "1.0"`, "namespace: " + ciNamespace} {
		if !strings.Contains(manifest, strings.TrimSuffix(want, "\n")) {
			t.Errorf("the manifests lack %q", want)
		}
	}
	for _, placeholder := range []string{" NAME,", ": IMAGE", "VERSION}", "name: SHOP\n", "name: CI}"} {
		if strings.Contains(manifest, placeholder) {
			t.Errorf("the manifests still hold the placeholder %q", placeholder)
		}
	}
}

func TestShown_CanBePastedIntoAShell(t *testing.T) {
	for _, args := range [][]string{
		{"kubectl", "patch", "-p", `[{"op":"remove","path":"/a b"}]`},
		{"echo", "it's", "$HOME", "a;b", "plain", "", `back\slash`, "`x`", "two\nlines"},
	} {
		line := shown(append([]string{"printf", `%s\n`}, args...))
		out, err := exec.CommandContext(t.Context(), "sh", "-c", line).Output()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Join(args, "\n")+"\n", string(out)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}
