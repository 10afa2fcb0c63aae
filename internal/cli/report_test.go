// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// fleet has an object in every state.
func fleet() []client.Object {
	retired := before(time.Minute)
	return []client.Object{
		baselineOf("calm"),
		baselineOf("imported", func(b *v1alpha1.Baseline) { b.Spec.Authorized.Origin = v1alpha1.OriginImported }),
		baselineOf("web", drifted(found("/spec/replicas", "1", "5", "alice", 5*time.Minute), found("/spec/paused", "", "true", "", time.Minute))),
		baselineOf("fought", drifted(found("/spec/replicas", "1", "5", "bob", time.Hour)), func(b *v1alpha1.Baseline) {
			b.Status.Severity = &v1alpha1.Severity{Level: v1alpha1.SeverityCritical, Score: 92}
			b.Status.Contention = &v1alpha1.Contention{StartTime: before(4 * time.Minute), With: []string{"bob", "ci"}}
		}),
		baselineOf("gone", state(v1alpha1.StateMissing), func(b *v1alpha1.Baseline) {
			b.Status.Observed.Hash = "absent"
			b.Status.FirstSeenTime = &retired
			b.Status.Findings = []v1alpha1.Finding{found("", "{}", "", "bob", time.Minute)}
		}),
		baselineOf("unread", state(v1alpha1.StateUnknown)),
		baselineOf("new", state(""), func(b *v1alpha1.Baseline) { b.Spec.Authorized = nil }),
		baselineOf("retired", func(b *v1alpha1.Baseline) { b.Status.State, b.Status.RetirementTime = v1alpha1.StateRetired, &retired }),
	}
}

func TestStatus_Golden(t *testing.T) {
	cases := map[string][]string{
		"default": {"status"},
		"wide":    {"status", "-o", "wide", "-A"},
		"bare":    {"status", "--no-headers"},
		"name":    {"status", "-o", "name"},
		"one":     {"status", "deployment/web", "-o", "yaml"},
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			got := fakeCluster{objects: fleet()}.run(t, "", args...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("%q gave %d, %s", args, got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", "status/"+name+".txt"), got.Stdout)
		})
	}
}

func TestBlame_Golden(t *testing.T) {
	cases := map[string][]string{
		"blame":     {"blame", "deployment/web"},
		"blamewide": {"blame", "deployment", "fought", "-o", "wide"},
		"blamejson": {"blame", "deployment/web", "-o", "json"},
		"blamenew":  {"blame", "deployment/new"},
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			got := fakeCluster{objects: fleet()}.run(t, "", args...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("%q gave %d, %s", args, got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", "status/"+name+".txt"), got.Stdout)
		})
	}
}

func TestStatus_ExitCodeAnswers(t *testing.T) {
	cases := map[string]struct {
		objects []client.Object
		args    []string
		want    int
	}{
		"all in sync":                            {[]client.Object{baselineOf("a"), baselineOf("b")}, nil, 0},
		"a retired object beside it":             {[]client.Object{baselineOf("a"), fleet()[7]}, nil, 0},
		"a drifted object":                       {[]client.Object{baselineOf("a"), fleet()[2]}, nil, 1},
		"a missing object":                       {[]client.Object{baselineOf("a"), fleet()[4]}, nil, 1},
		"an object that could not be read":       {[]client.Object{baselineOf("a"), fleet()[5]}, nil, 2},
		"drift and an unread object":             {[]client.Object{fleet()[2], fleet()[5]}, nil, 1},
		"an object that was never compared":      {[]client.Object{baselineOf("a"), fleet()[6]}, nil, 2},
		"nothing guarded":                        {nil, nil, 2},
		"only retired objects":                   {[]client.Object{fleet()[7]}, nil, 2},
		"drift that no guard selects any more":   {[]client.Object{baselineOf("a"), baselineOf("b", drifted(found("/x", "1", "2", "alice", 0)), state(v1alpha1.StateNotGuarded))}, nil, 0},
		"a named object that has no Baseline":    {[]client.Object{baselineOf("a")}, []string{"deployment", "a", "b"}, 2},
		"a drifted one beside one without it":    {[]client.Object{fleet()[2]}, []string{"deployment", "web", "b"}, 2},
		"a mistake in the command line":          {nil, []string{"-l", "="}, 2},
		"a flag that is not there is a mistake":  {nil, []string{"--nope"}, 1},
		"another namespace is not looked at":     {[]client.Object{inNamespaceOf("other", fleet()[2])}, nil, 2},
		"every namespace is, when asked":         {[]client.Object{inNamespaceOf("other", fleet()[2])}, []string{"-A"}, 1},
		"a type that nothing guarded is of":      {[]client.Object{baselineOf("a")}, []string{"node"}, 2},
		"JSON answers by exit code all the same": {[]client.Object{fleet()[2]}, []string{"-o", "json"}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := fakeCluster{objects: tc.objects}.run(t, "", append([]string{"status", "--exit-code"}, tc.args...)...)
			if got.Code != tc.want {
				t.Errorf("exit code %d, want %d\n%s%s", got.Code, tc.want, got.Stdout, got.Stderr)
			}
		})
	}
}

func inNamespaceOf(namespace string, object client.Object) client.Object {
	object.SetNamespace(namespace)
	return object
}

const authorizedSpec = `{"replicas":1,"template":{"spec":{"containers":[{"env":[{"name":"API_TOKEN","value":"old-secret"}],"image":"nginx:1.27","name":"app"}]}}}`

func TestDiff_Golden(t *testing.T) {
	web := baselineOf("web", drifted(found("/spec/replicas", "1", "5", "alice", time.Minute)))
	revision := revisionOf(t, web, 3, `{"spec":`+authorizedSpec+`}`)
	live := liveBody(t, `{"replicas":5,"strategy":{"type":"Recreate"},"template":{"spec":{"containers":[{"env":[{"name":"API_TOKEN","value":"new-secret"}],"image":"nginx:1.28\u009b","name":"app"},{"name":"extra","image":"x"}]}}}`)
	masked := baselineOf("web", func(b *v1alpha1.Baseline) {
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
		"same":         {[]client.Object{web, revision}, map[string]string{"web": liveBody(t, authorizedSpec)}, nil, 0},
		"same-yaml":    {[]client.Object{web, revision}, map[string]string{"web": liveBody(t, authorizedSpec)}, []string{"-o", "yaml"}, 0},
		"masked":       {[]client.Object{masked, revision}, map[string]string{"web": liveBody(t, strings.Replace(authorizedSpec, `"replicas":1`, `"replicas":5`, 1))}, nil, 0},
		"mask-moved":   {[]client.Object{masked, revision}, map[string]string{"web": liveBody(t, strings.Replace(authorizedSpec, `"replicas":1`, `"replicas":6`, 1))}, nil, 1},
		"gone":         {[]client.Object{web, revision}, nil, nil, 1},
		"unexpected":   {[]client.Object{baselineOf("web", func(b *v1alpha1.Baseline) { b.Spec.Authorized = nil })}, map[string]string{"web": live}, nil, 1},
		"retired":      {[]client.Object{baselineOf("web", state(v1alpha1.StateRetired), func(b *v1alpha1.Baseline) { at := before(0); b.Status.RetirementTime = &at })}, nil, nil, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := fakeCluster{objects: tc.objects, live: tc.live}.run(t, "", append([]string{"diff", "deployment/web"}, tc.args...)...)
			if got.Code != tc.code || got.Stderr != "" {
				t.Errorf("exit code %d, want %d, stderr %q", got.Code, tc.code, got.Stderr)
			}
			if strings.Contains(got.Stdout, "-secret") {
				t.Errorf("a secret is shown:\n%s", got.Stdout)
			}
			golden.Check(t, filepath.Join("testdata", "diff/"+name+".txt"), got.Stdout)
		})
	}
}

func TestDiff_FailuresExitWith2(t *testing.T) {
	web := baselineOf("web")
	good := revisionOf(t, web, 3, `{"spec":{}}`)
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
			got := fakeCluster{objects: tc.objects, live: map[string]string{"web": liveBody(t, "{}")}}.run(t, "", "diff", "deployment/web")
			if got.Code != 2 || got.Stdout != "" || !strings.Contains(got.Stderr, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

func TestDiffWriter_ColorsOnTerminals(t *testing.T) {
	w := &diffWriter{color: true}
	w.changes([]changeReport{{Path: "/a", Operation: "Changed", Before: "1", After: "2"}, {Path: "/l", Operation: "Changed", Reordered: true, Before: `["a","b"]`, After: `["b","a"]`}})
	want := "\x1b[36m@@ /a @@\x1b[0m\n\x1b[31m-1\x1b[0m\n\x1b[32m+2\x1b[0m\n" +
		"\x1b[36m@@ /l @@ reordered\x1b[0m\n" +
		"\x1b[31m-[\x1b[0m\n\x1b[31m-  \"a\",\x1b[0m\n\x1b[31m-  \"b\"\x1b[0m\n\x1b[31m-]\x1b[0m\n" +
		"\x1b[32m+[\x1b[0m\n\x1b[32m+  \"b\",\x1b[0m\n\x1b[32m+  \"a\"\x1b[0m\n\x1b[32m+]\x1b[0m\n"
	if diff := cmp.Diff(want, w.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHistory_Golden(t *testing.T) {
	web := baselineOf("web")
	objects := []client.Object{web, revisionOf(t, web, 1, `{"spec":{"replicas":1}}`), revisionOf(t, web, 3, `{"spec":{"replicas":3,"x":"<b>"}}`)}
	cases := map[string][]string{
		"table": {"history", "deployment/web"},
		"wide":  {"history", "deployment/web", "-o", "wide"},
		"json":  {"history", "deployment/web", "-o", "json"},
		"body":  {"history", "deployment/web", "--revision", "3"},
		"bodyj": {"history", "deployment/web", "--revision", "3", "-o", "json"},
		"diff":  {"history", "deployment/web", "--diff", "1..3"},
		"diffj": {"history", "deployment/web", "--diff", "1..3", "-o", "json"},
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			got := fakeCluster{objects: objects}.run(t, "", args...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("%q gave %d, %s", args, got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", "history/"+name+".txt"), got.Stdout)
		})
	}
	none := fakeCluster{objects: []client.Object{baselineOf("web", func(b *v1alpha1.Baseline) { b.Spec.Authorized = nil })}}.run(t, "", "history", "deployment/web")
	if none.Code != 0 || none.Stdout != "" || none.Stderr != "No authorized state of deployment.apps/web found: nobody trusted has created it.\n" {
		t.Errorf("history of what was never authorized gave %+v", none)
	}
}
