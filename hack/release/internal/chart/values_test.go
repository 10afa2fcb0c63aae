// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const values = `# Head.
image:
  # -- Registry.
  registry: docker.io/plumbline # by default
  tag: ""
redis: {image: {tag: "8"}}
list: [a]
long: >-
  folded
`

func TestSetScalars(t *testing.T) {
	got, err := SetScalars([]byte(values), map[string]string{"image.registry": "ghcr.io/me", "image.tag": `v1"x`})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("registry: docker.io/plumbline", `registry: "ghcr.io/me"`, `tag: ""`, `tag: "v1\"x"`).Replace(values)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if value, err := Scalar(got, "image.tag"); err != nil || value != `v1"x` {
		t.Errorf("read again it is %q (%v)", value, err)
	}
}

func TestSetScalarsRefuses(t *testing.T) {
	for name, path := range map[string]string{
		"a value that does not exist": "image.absent",
		"a mapping":                   "image",
		"a list":                      "list",
		"a value inside braces":       "redis.image.tag",
		"a folded value":              "long",
	} {
		if _, err := SetScalars([]byte(values), map[string]string{path: "x"}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := SetScalars([]byte("{"), nil); err == nil {
		t.Error("broken YAML was taken")
	}
}

func TestTheUpstreamImagesAreThoseOfTheChart(t *testing.T) {
	text := "mesh:\n  proxy:\n    image:\n      repository: example.test/envoy\n      tag: v1\n      digest: \"\"\n"
	got, err := UpstreamImages([]byte(text))
	if err != nil || len(got) != 2 || got[1].Reference() != "example.test/envoy:v1" {
		t.Errorf("images %+v (%v)", got, err)
	}
	got[1].Digest = "sha256:abc"
	if got[1].Reference() != "example.test/envoy@sha256:abc" {
		t.Errorf("pinned it is %s", got[1].Reference())
	}
	if _, err := UpstreamImages([]byte("mesh: {}\n")); err == nil {
		t.Error("a chart without an image of Envoy was taken")
	}
}
