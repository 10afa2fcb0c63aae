// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

func TestDiff_Golden(t *testing.T) {
	web := clitest.BaselineOf("web", clitest.Drifted(clitest.Found("/spec/replicas", "1", "5", "alice", time.Minute)))
	revision := clitest.RevisionOf(t, web, 3, `{"spec":`+clitest.AuthorizedSpec+`}`)
	live := clitest.LiveBody(t, `{"replicas":5,"strategy":{"type":"Recreate"},"template":{"spec":{"containers":[{"env":[{"name":"API_TOKEN","value":"new-secret"}],"image":"nginx:1.28\u009b","name":"app"},{"name":"extra","image":"x"}]}}}`)
	masked := clitest.BaselineOf("web", func(b *v1alpha1.Baseline) {
		b.Status.Masks = []v1alpha1.Mask{{Path: "/spec/replicas", Value: "5", Rule: "autoscaler", Actor: v1alpha1.Actor{User: "hpa"}}}
	})
	cases := map[string]struct {
		objects []client.Object
		live    map[string]string
		args    []string
		code    int
	}{
		"drifted":      {[]client.Object{web, revision}, map[string]string{"web": live}, nil, 1},
		"drifted-json": {[]client.Object{web, revision}, map[string]string{"web": live}, []string{"-o", "json"}, 1},
		"same":         {[]client.Object{web, revision}, map[string]string{"web": clitest.LiveBody(t, clitest.AuthorizedSpec)}, nil, 0},
		"same-yaml":    {[]client.Object{web, revision}, map[string]string{"web": clitest.LiveBody(t, clitest.AuthorizedSpec)}, []string{"-o", "yaml"}, 0},
		"masked":       {[]client.Object{masked, revision}, map[string]string{"web": clitest.LiveBody(t, strings.Replace(clitest.AuthorizedSpec, `"replicas":1`, `"replicas":5`, 1))}, nil, 0},
		"mask-moved":   {[]client.Object{masked, revision}, map[string]string{"web": clitest.LiveBody(t, strings.Replace(clitest.AuthorizedSpec, `"replicas":1`, `"replicas":6`, 1))}, nil, 1},
		"gone":         {[]client.Object{web, revision}, nil, nil, 1},
		"unexpected":   {[]client.Object{clitest.BaselineOf("web", func(b *v1alpha1.Baseline) { b.Spec.Authorized = nil })}, map[string]string{"web": live}, nil, 1},
		"retired":      {[]client.Object{clitest.BaselineOf("web", clitest.InState(v1alpha1.StateRetired), func(b *v1alpha1.Baseline) { at := clitest.Before(0); b.Status.RetirementTime = &at })}, nil, nil, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: tc.objects, Live: tc.live}.Run(t, verbs, "", append([]string{"diff", "deployment/web"}, tc.args...)...)
			if got.Code != tc.code || got.Stderr != "" {
				t.Errorf("exit code %d, want %d, stderr %q", got.Code, tc.code, got.Stderr)
			}
			if strings.Contains(got.Stdout, "-secret") {
				t.Errorf("a secret is shown:\n%s", got.Stdout)
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), got.Stdout)
		})
	}
}

func TestDiff_FailuresExitWith2(t *testing.T) {
	web := clitest.BaselineOf("web")
	good := clitest.RevisionOf(t, web, 3, `{"spec":{}}`)
	broken := func(change func(*v1alpha1.BaselineRevision)) []client.Object {
		r := good.DeepCopy()
		change(r)
		return []client.Object{web, r}
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := encoder.EncodeAll(make([]byte, 64<<20), nil)
	cases := map[string]struct {
		objects []client.Object
		want    string
	}{
		"no Baseline":                     {nil, "deployment.apps/web in namespace shop has no Baseline"},
		"the authorized revision is gone": {[]client.Object{web}, "Error from server (NotFound): reading the authorized state of deployment.apps/web: "},
		"an encoding of another version":  {broken(func(r *v1alpha1.BaselineRevision) { r.Spec.Encoding = "Brotli" }), `unknown encoding "Brotli"`},
		"a damaged body":                  {broken(func(r *v1alpha1.BaselineRevision) { r.Spec.Body = []byte("nonsense") }), "reading revision deployments.apps.web-3"},
		"a body of another size":          {broken(func(r *v1alpha1.BaselineRevision) { r.Spec.Size = 7 }), "11 bytes instead of 7"},
		"a body that unpacks into 64 MiB": {broken(func(r *v1alpha1.BaselineRevision) { r.Spec.Body = bomb }), "reading revision"},
		"the revision of another object":  {broken(func(r *v1alpha1.BaselineRevision) { r.Spec.BaselineName = "deployments.apps.db" }), "says it is number 3 of deployments.apps.db"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: tc.objects, Live: map[string]string{"web": clitest.LiveBody(t, "{}")}}.Run(t, verbs, "", "diff", "deployment/web")
			if got.Code != 2 || got.Stdout != "" || !strings.Contains(got.Stderr, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}
