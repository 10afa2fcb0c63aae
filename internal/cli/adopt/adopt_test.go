// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/adopt"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestAdopt_UsageErrorsGiveTheHint(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"a span of nothing":                  {[]string{"--since", "0s"}, "--since must be longer than 0, not 0s"},
		"an unknown dry run":                 {[]string{"--dry-run=maybe"}, "invalid dry-run value (maybe)"},
		"an unknown format":                  {[]string{"--dry-run", "-o", "xml"}, "allowed formats are: json,yaml,wide"},
		"a format for scripts while writing": {[]string{"-o", "yaml"}, "-o yaml prints the findings of --dry-run; add --dry-run"},
		"a guard twice":                      {[]string{"guard", "a", "-f", "-"}, "a guard by name and -f exclude each other"},
		"a new guard and a given one":        {[]string{"guard", "a", "--kind", "deployment"}, "describe a new guard, and exclude a given one"},
		"two choices of namespaces":          {[]string{"-A", "--namespace-selector", "a=b"}, "-A and --namespace-selector exclude each other"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.RunOffline(t, verbs, "", append([]string{"adopt"}, tc.args...)...)
			if got.Code != 1 || !strings.Contains(got.Stderr, tc.want) || !strings.HasSuffix(got.Stderr, "See 'kubectl plumbline adopt -h' for help and examples\n") {
				t.Errorf("%q gave %+v, want %q", tc.args, got, tc.want)
			}
		})
	}
}

// shopObjects are Deployments of the namespace shop and one ready guard.
func shopObjects(names ...string) []client.Object {
	objects := []client.Object{&v1alpha1.ClusterSpecGuard{
		ObjectMeta: metav1.ObjectMeta{Name: "platform"},
		Spec: v1alpha1.ClusterGuardSpec{GuardSpec: v1alpha1.GuardSpec{
			Mode: v1alpha1.GuardModeWarn, Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}},
		}},
	}}
	for _, name := range names {
		at := clitest.Before(time.Hour)
		fields := &metav1.FieldsV1{}
		fields.SetRawBytes([]byte(`{"f:spec":{"f:replicas":{}}}`))
		objects = append(objects, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, CreationTimestamp: clitest.Before(48 * time.Hour),
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl-edit", Operation: "Update", APIVersion: "apps/v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: fields}},
		}})
	}
	return objects
}

// adoptCluster lists metadata as a server does; the fake cannot do that of
// objects whose type it does not know.
func adoptCluster(names ...string) clitest.Cluster {
	objects := shopObjects(names...)
	return clitest.Cluster{Objects: objects[:1], Hooks: interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			metadata, ok := list.(*metav1.PartialObjectMetadataList)
			if !ok || list.GetObjectKind().GroupVersionKind().Kind != "DeploymentList" {
				return c.List(ctx, list, options...)
			}
			metadata.Items = nil
			for _, o := range objects[1:] {
				metadata.Items = append(metadata.Items, metav1.PartialObjectMetadata{ObjectMeta: o.(*appsv1.Deployment).ObjectMeta})
			}
			return nil
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return c.Create(ctx, object, options...)
		},
	}}
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guard.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const guardHead = "apiVersion: plumbline.dev/v1alpha1\nkind: SpecGuard\nmetadata: {name: mine}\n"

func TestAdopt_BeginsWithTheGuardThatIsNamed(t *testing.T) {
	cases := map[string]struct {
		args []string
		file string
		code int
		want string // part of standard output, or of standard error if code is not 0
	}{
		"a new SpecGuard of the namespace":            {args: []string{"--kind", "deployment"}, want: "SpecGuard shop/workloads would cover 2 objects."},
		"a new ClusterSpecGuard of all":               {args: []string{"--kind", "deployment", "-A", "--name", "all"}, want: "ClusterSpecGuard all would cover 2 objects."},
		"a guard from a file":                         {file: guardHead + "spec: {resources: [{apiVersion: apps/v1, kind: Deployment}]}\n", want: "SpecGuard shop/mine would cover 2 objects."},
		"an existing guard, with its mode":            {args: []string{"guard", "platform"}, want: "mode: Warn"},
		"an existing guard by its own kind":           {args: []string{"csg/platform"}, want: "ClusterSpecGuard platform would cover"},
		"a guard that is not there":                   {args: []string{"guard", "none"}, code: 1, want: "there is neither a SpecGuard none in namespace shop nor a ClusterSpecGuard none"},
		"what is no guard":                            {args: []string{"deploy/web"}, code: 1, want: `"deploy" is no guard`},
		"an unknown kind":                             {args: []string{"--kind", "gizmo"}, code: 1, want: `the server doesn't have a resource type "gizmo"`},
		"a kind without a namespace":                  {args: []string{"--kind", "node"}, code: 1, want: "are not namespaced"},
		"a name that is taken":                        {args: []string{"--kind", "deployment", "-A", "--name", "platform"}, code: 1, want: "ClusterSpecGuard platform exists already: look at it with 'adopt clusterspecguard platform'"},
		"a misspelt field in a file":                  {file: guardHead + "spec: {resource: []}\n", code: 1, want: `unknown field "spec.resource"`},
		"another kind in a file":                      {file: "apiVersion: plumbline.dev/v1alpha1\nkind: Baseline\n", code: 1, want: `kind is "Baseline", want SpecGuard or ClusterSpecGuard`},
		"another API in a file":                       {file: "apiVersion: v1\nkind: Pod\n", code: 1, want: `apiVersion is "v1"`},
		"two guards in a file":                        {file: guardHead + "---\n" + guardHead, code: 1, want: "holds 2 documents, want one guard"},
		"a guard without a name":                      {file: "apiVersion: plumbline.dev/v1alpha1\nkind: ClusterSpecGuard\nspec: {}\n", code: 1, want: "no metadata.name"},
		"a guard that admission would refuse":         {file: guardHead + "spec: {resources: [{apiVersion: v1, kind: Secret}]}\n", code: 1, want: "spec.resources[0].kind: Forbidden"},
		"a guard of a kind that the server has not":   {file: guardHead + "spec: {resources: [{apiVersion: e.com/v1, kind: Gizmo}]}\n", code: 1, want: "names a kind that the server does not have: e.com/v1 Gizmo"},
		"a selector of namespaces that is no query":   {args: []string{"--namespace-selector", "a b"}, code: 1, want: `unable to parse selector "a b"`},
		"more than one guard":                         {args: []string{"guard", "a", "b"}, code: 1, want: "name one guard"},
		"nothing trusted is proposed for kubectl":     {args: []string{"--kind", "deployment"}, want: "manager kubectl-edit   2         60m    a program that people write with"},
		"what could not be read is said to be so":     {args: []string{"--kind", "deployment"}, want: "the installation"},
		"the drift of the last day is counted":        {args: []string{"--kind", "deployment"}, want: ": 2 of 2 writes; 0 authorized, 0 expected, 0 benign"},
		"writes before the span are not drift":        {args: []string{"--kind", "deployment", "--since", "30m"}, want: ": 0 of 0 writes"},
		"wide shows the managers":                     {args: []string{"--kind", "deployment", "-o", "wide"}, want: "UNPROVEN-STAMP"},
		"no headers are printed where none are asked": {args: []string{"--kind", "deployment", "--no-headers"}, want: "deployment.apps   shop   2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"adopt", "--dry-run"}, tc.args...)
			if tc.file != "" {
				args = append(args, "-f", writeFile(t, tc.file))
			}
			got := adoptCluster("web", "cart").Run(t, verbs, "", args...)
			said := got.Stdout
			if tc.code != 0 {
				said = got.Stderr
			}
			if got.Code != tc.code || !strings.Contains(said, tc.want) {
				t.Errorf("%q gave %d, want %d and %q\nstdout: %s\nstderr: %s", args, got.Code, tc.code, tc.want, got.Stdout, got.Stderr)
			}
		})
	}
}

func TestAdopt_CreatesAfterADryRunAndAConfirmation(t *testing.T) {
	cases := map[string]struct {
		stdin   string
		args    []string
		refused bool
		want    clitest.Answer
		created []string // dry runs first
	}{
		"yes is an answer":              {stdin: "y\n", want: clitest.Answer{Code: 0, Stdout: "specguard.plumbline.dev/workloads created\n", Stderr: ""}, created: []string{"dry run Audit", "stored Audit"}},
		"anything else is no":           {stdin: "\n", want: clitest.Answer{Code: 1, Stdout: "", Stderr: "error: nothing was created\n"}, created: []string{"dry run Audit"}},
		"--yes asks nobody":             {args: []string{"--yes"}, want: clitest.Answer{Code: 0, Stdout: "specguard.plumbline.dev/workloads created\n", Stderr: ""}, created: []string{"dry run Audit", "stored Audit"}},
		"nobody can be asked":           {want: clitest.Answer{Code: 1, Stdout: "", Stderr: "error: nothing was created: creating a guard needs a confirmation, and standard input is no terminal; use --yes\n"}, created: []string{"dry run Audit"}},
		"a dry run at the server":       {args: []string{"--dry-run=server"}, want: clitest.Answer{Code: 0, Stdout: "", Stderr: "specguard.plumbline.dev/workloads created (server dry run)\n"}, created: []string{"dry run Audit"}},
		"the server says no beforehand": {args: []string{"--yes"}, refused: true, want: clitest.Answer{Code: 1, Stdout: "", Stderr: "Error from server (Forbidden): creating specguard.plumbline.dev/workloads: "}, created: []string{"dry run Audit"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := adoptCluster("web")
			var created []string
			f.Hooks.Create = func(_ context.Context, _ client.WithWatch, object client.Object, options ...client.CreateOption) error {
				var o client.CreateOptions
				o.ApplyOptions(options)
				how := "stored"
				if len(o.DryRun) > 0 {
					how = "dry run"
				}
				created = append(created, fmt.Sprintf("%s %s", how, object.(*v1alpha1.SpecGuard).Spec.Mode))
				if tc.refused {
					return apierrors.NewForbidden(schema.GroupResource{Group: "plumbline.dev", Resource: "specguards"}, "workloads", errors.New("no"))
				}
				return nil
			}
			got := f.Run(t, verbs, tc.stdin, append([]string{"adopt", "--kind", "deployment"}, tc.args...)...)
			if got.Code != tc.want.Code || (tc.want.Stdout != "" && got.Stdout != tc.want.Stdout) || !strings.Contains(got.Stderr, tc.want.Stderr) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if diff := cmp.Diff(tc.created, created); diff != "" {
				t.Errorf("created (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAdopt_OverwritesNoGuard(t *testing.T) {
	for _, args := range [][]string{{"guard", "platform", "--yes"}, {"-A", "--kind", "deployment", "--name", "platform", "--yes"}} {
		f := adoptCluster("web")
		f.Hooks.Create = func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			t.Errorf("%q creates", args)
			return nil
		}
		if got := f.Run(t, verbs, "", append([]string{"adopt"}, args...)...); got.Code != 1 || !strings.Contains(got.Stderr, "ClusterSpecGuard platform exists") {
			t.Errorf("%q gave %+v", args, got)
		}
	}
}

func TestAdopt_ReadsOnWhereAPageHasExpired(t *testing.T) {
	f := adoptCluster()
	var asked []string
	f.Hooks.List = func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		var o client.ListOptions
		o.ApplyOptions(options)
		asked = append(asked, fmt.Sprintf("%d from %q", o.Limit, o.Continue))
		metadata := list.(*metav1.PartialObjectMetadataList)
		metadata.Items = nil
		switch o.Continue {
		case "":
			metadata.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}}
			metadata.Continue = "old"
		case "old":
			expired := apierrors.NewResourceExpired("too old")
			expired.ErrStatus.Continue = "anew"
			return expired
		default:
			metadata.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"}}}
		}
		return nil
	}
	got := f.Run(t, verbs, "", "adopt", "--kind", "deployment", "--dry-run", "-o", "json")
	var report struct{ Objects int }
	if err := json.Unmarshal([]byte(got.Stdout), &report); err != nil || report.Objects != 2 {
		t.Errorf("of two pages %d objects were read: %v %+v", report.Objects, err, got)
	}
	if diff := cmp.Diff([]string{`500 from ""`, `500 from "old"`, `500 from "anew"`}, asked); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

func TestAdopt_FailsWhereAReadFails(t *testing.T) {
	broken := errors.New("the network is down")
	f := adoptCluster()
	f.Hooks.List = func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken }
	if got := f.Run(t, verbs, "", "adopt", "--kind", "deployment", "--dry-run"); got.Code != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, "reading deployments.apps in namespace shop: the network is down") {
		t.Errorf("a failed read gave %+v", got)
	}
}

func TestPrintAdoption_CutsLongTables(t *testing.T) {
	names := make([]string, maxListed+7)
	for i := range names {
		names[i] = fmt.Sprintf("web-%03d", i)
	}
	got := adoptCluster(names...).Run(t, verbs, "", "adopt", "--kind", "deployment", "--dry-run")
	if strings.Count(got.Stdout, "... and 7 more (-o json)") != 2 || strings.Contains(got.Stdout, "deployment.apps/web-053") {
		t.Errorf("the tables are not cut:\n%s", got.Stdout)
	}
}

func TestPathWords_SayWhatIsLeftOut(t *testing.T) {
	cases := map[string]struct {
		write adopt.Write
		all   bool
		want  string
	}{
		"few":                {adopt.Write{Paths: []string{"/a", "/b"}, PathsTotal: 2}, false, "/a, /b"},
		"many":               {adopt.Write{Paths: []string{"/a", "/b", "/c", "/d"}, PathsTotal: 40}, false, "/a, /b, /c and 37 more"},
		"many, all":          {adopt.Write{Paths: []string{"/a", "/b", "/c", "/d"}, PathsTotal: 40}, true, "/a, /b, /c, /d and 36 more"},
		"the whole object":   {adopt.Write{Paths: []string{""}, PathsTotal: 1}, false, "(object)"},
		"a created object":   {adopt.Write{Created: true, Paths: []string{"/a"}, PathsTotal: 1}, false, "(the object itself)"},
		"a cursor in a path": {adopt.Write{Paths: []string{"/a\x1b[2J"}, PathsTotal: 1}, false, "/a\ufffd[2J"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := pathWords(tc.write, tc.all); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
