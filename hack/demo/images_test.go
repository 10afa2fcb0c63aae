// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/test/harness/child"
)

// Pods of CLUSTER=current waited for registry/webhook:dev while the push had put
// registry/plumbline/webhook:dev there.
func TestImageSet_IsWhereThePushPutsTheImages(t *testing.T) {
	tests := map[string]struct {
		images imageSet
		want   imageSet
		shop   string
	}{
		"no registry: as loaded into the local cluster": {loaded, imageSet{registry: "docker.io/plumbline"}, "docker.io/plumbline/shop:dev"},
		"a registry":                         {pushedTo("ghcr.io/me", "-0a"), imageSet{"ghcr.io/me/plumbline", "-0a"}, "ghcr.io/me/plumbline/shop:dev-0a"},
		"a registry with a slash at the end": {pushedTo("localhost:5000/", ""), imageSet{registry: "localhost:5000/plumbline"}, "localhost:5000/plumbline/shop:dev"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.images, cmp.AllowUnexported(imageSet{})); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
			if got := tc.images.shop(); got != tc.shop {
				t.Errorf("the shop is %s, want %s", got, tc.shop)
			}
			if hotfix := tc.images.shopHotfix(); hotfix != strings.Replace(tc.shop, ":dev", ":hotfix", 1) {
				t.Errorf("the hotfix is %s beside %s", hotfix, tc.shop)
			}
		})
	}
}

func TestContentSuffix_FollowsEveryByteAndNothingElse(t *testing.T) {
	write := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	suffix := func(contents ...string) string {
		var archives []string
		for _, content := range contents {
			archives = append(archives, write("x.tar", content))
		}
		got, err := contentSuffix(archives)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	one := suffix("webhook", "shop")
	if again := suffix("webhook", "shop"); again != one {
		t.Errorf("equal content gives %s and %s", one, again)
	}
	for what, contents := range map[string][]string{
		"another byte": {"webhook", "shoP"}, "a byte moved to the next image": {"webhoo", "kshop"}, "one image less": {"webhookshop"},
	} {
		if other := suffix(contents...); other == one {
			t.Errorf("%s gives the same suffix %s", what, one)
		}
	}
	if !regexp.MustCompile(`^-[0-9a-f]{12}$`).MatchString(one) {
		t.Errorf("%q cannot end a tag", one)
	}
	if _, err := contentSuffix([]string{"/nonexistent/x.tar"}); err == nil || !strings.Contains(err.Error(), "/nonexistent/x.tar") {
		t.Errorf("a missing archive gives %v", err)
	}
}

func TestOptions_RefuseAClusterThatCannotPull(t *testing.T) {
	tests := map[string]struct {
		options options
		want    string
	}{
		"current without a registry": {options{cluster: "current"}, "make demo CLUSTER=current REGISTRY=ghcr.io/me"},
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
	manifest := releaseManifest("docker.io/plumbline/shop:dev", "1.0") + named(accessManifest) + named(guardManifest)
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
		out, err := child.Bind(exec.CommandContext(t.Context(), "sh", "-c", line)).Output()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Join(args, "\n")+"\n", string(out)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}
