// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

func TestClassifyChange(t *testing.T) {
	const app = "/spec/template/spec/containers/[name=app]"
	tests := map[string]struct {
		kind, path    string // apps/v1 Deployment unless said
		before, after string // empty is absent
		wantType      v1alpha1.DriftType
		wantClass     v1alpha1.FindingClass
	}{
		"another tag":                                {path: app + "/image", before: `"web:1"`, after: `"web:2"`, wantType: v1alpha1.DriftImage, wantClass: v1alpha1.ClassImageVersion},
		"a digest instead of a tag":                  {path: app + "/image", before: `"web:1"`, after: `"docker.io/library/web@sha256:00"`, wantType: v1alpha1.DriftImage, wantClass: v1alpha1.ClassImageVersion},
		"another repository":                         {path: app + "/image", before: `"web:1"`, after: `"evil.example:5000/web:1"`, wantType: v1alpha1.DriftImage, wantClass: v1alpha1.ClassImageRepository},
		"a container gone":                           {path: app, before: `{"name":"app","image":"web"}`, wantType: v1alpha1.DriftMissing, wantClass: v1alpha1.ClassContainerMissing},
		"a container more":                           {path: app, after: `{"name":"app","image":"web"}`, wantType: v1alpha1.DriftUnexpected, wantClass: v1alpha1.ClassImageRepository},
		"an init container more":                     {path: "/spec/template/spec/initContainers/[name=i]", after: `{"name":"i","image":"web"}`, wantType: v1alpha1.DriftUnexpected, wantClass: v1alpha1.ClassImageRepository},
		"the first init container":                   {path: "/spec/template/spec/initContainers", after: `[{"name":"i","image":"web"}]`, wantType: v1alpha1.DriftUnexpected, wantClass: v1alpha1.ClassImageRepository},
		"all init containers gone":                   {path: "/spec/template/spec/initContainers", before: `[{"name":"i","image":"web"}]`, wantType: v1alpha1.DriftMissing, wantClass: v1alpha1.ClassContainerMissing},
		"init containers in another order":           {path: "/spec/template/spec/initContainers", before: `[{"name":"i"},{"name":"j"}]`, after: `[{"name":"j"},{"name":"i"}]`, wantType: v1alpha1.DriftOther, wantClass: v1alpha1.ClassExecution},
		"arguments":                                  {path: app + "/args", before: `["a"]`, after: `["b"]`, wantType: v1alpha1.DriftOther, wantClass: v1alpha1.ClassExecution},
		"a lifecycle hook":                           {path: app + "/lifecycle", after: `{"postStart":{"exec":{"command":["x"]}}}`, wantType: v1alpha1.DriftUnexpected, wantClass: v1alpha1.ClassExecution},
		"a probe that executes":                      {path: app + "/livenessProbe", after: `{"exec":{"command":["x"]}}`, wantType: v1alpha1.DriftUnexpected, wantClass: v1alpha1.ClassExecution},
		"the command of a probe":                     {path: app + "/livenessProbe/exec/command", before: `["a"]`, after: `["b"]`, wantType: v1alpha1.DriftOther, wantClass: v1alpha1.ClassExecution},
		"a probe that executed goes":                 {path: app + "/readinessProbe", before: `{"exec":{"command":["x"]}}`, wantType: v1alpha1.DriftOther, wantClass: v1alpha1.ClassExecution},
		"a probe that asks":                          {path: app + "/livenessProbe/httpGet/path", before: `"/a"`, after: `"/b"`, wantType: v1alpha1.DriftOther, wantClass: v1alpha1.ClassOther},
		"capabilities":                               {path: app + "/securityContext/capabilities/add", after: `["NET_ADMIN"]`, wantType: v1alpha1.DriftUnexpected, wantClass: v1alpha1.ClassSecurity},
		"a service account":                          {path: "/spec/template/spec/serviceAccountName", before: `"a"`, after: `"b"`, wantType: v1alpha1.DriftOther, wantClass: v1alpha1.ClassSecurity},
		"the host's network":                         {path: "/spec/template/spec/hostNetwork", after: `true`, wantType: v1alpha1.DriftUnexpected, wantClass: v1alpha1.ClassSecurity},
		"a volume of the host":                       {path: "/spec/template/spec/volumes/[name=v]", after: `{"name":"v","hostPath":{"path":"/"}}`, wantType: v1alpha1.DriftUnexpected, wantClass: v1alpha1.ClassSecurity},
		"an empty volume":                            {path: "/spec/template/spec/volumes/[name=v]", after: `{"name":"v","emptyDir":{}}`, wantType: v1alpha1.DriftUnexpected, wantClass: v1alpha1.ClassStorage},
		"a mount":                                    {path: app + "/volumeMounts/[mountPath=~1x]", after: `{"mountPath":"/x","name":"v"}`, wantType: v1alpha1.DriftUnexpected, wantClass: v1alpha1.ClassStorage},
		"a port":                                     {path: app + "/ports/[containerPort=80,protocol=TCP]/containerPort", before: `80`, after: `81`, wantType: v1alpha1.DriftOther, wantClass: v1alpha1.ClassNetworking},
		"the DNS policy":                             {path: "/spec/template/spec/dnsPolicy", before: `"a"`, after: `"b"`, wantType: v1alpha1.DriftOther, wantClass: v1alpha1.ClassNetworking},
		"limits":                                     {path: app + "/resources/limits/cpu", before: `"1"`, after: `"2"`, wantType: v1alpha1.DriftOther, wantClass: v1alpha1.ClassResources},
		"an environment variable":                    {path: app + "/env/[name=A]", after: `{"name":"A","value":"x"}`, wantType: v1alpha1.DriftUnexpected, wantClass: v1alpha1.ClassOther},
		"replicas":                                   {path: "/spec/replicas", before: `1`, after: `2`, wantType: v1alpha1.DriftScale, wantClass: v1alpha1.ClassScale},
		"paused":                                     {path: "/spec/paused", after: `true`, wantType: v1alpha1.DriftScale, wantClass: v1alpha1.ClassScale},
		"a label of the template":                    {path: "/spec/template/metadata/labels/a", after: `"b"`, wantType: v1alpha1.DriftUnexpected, wantClass: v1alpha1.ClassTemplateMetadata},
		"the strategy":                               {path: "/spec/strategy/type", before: `"a"`, after: `"b"`, wantType: v1alpha1.DriftOther, wantClass: v1alpha1.ClassOther},
		"a template that came whole":                 {path: "/spec/template", after: `{"metadata":{"labels":{"a":"b"}},"spec":{"hostPID":true,"containers":[{"name":"a","resources":{}}]}}`, wantType: v1alpha1.DriftUnexpected, wantClass: v1alpha1.ClassImageRepository},
		"a custom kind's containers, compared whole": {kind: "Rollout", path: "/spec/template/spec/containers", before: `[{"name":"a","image":"web:1"},{"name":"b","image":"x:1"}]`, after: `[{"name":"a","image":"web:2"},{"name":"b","image":"x:1"}]`, wantType: v1alpha1.DriftImage, wantClass: v1alpha1.ClassImageVersion},
		"a custom kind's env, compared whole":        {kind: "Rollout", path: "/spec/template/spec/containers", before: `[{"name":"a","env":[{"name":"x","value":"1"}]}]`, after: `[{"name":"a","env":[{"name":"x","value":"2"}]}]`, wantType: v1alpha1.DriftOther, wantClass: v1alpha1.ClassOther},
		"a pod's image":                              {kind: "Pod", path: "/spec/containers/[name=a]/image", before: `"web:1"`, after: `"web:2"`, wantType: v1alpha1.DriftImage, wantClass: v1alpha1.ClassImageVersion},
		"a service's port":                           {kind: "Service", path: "/spec/ports/[port=80,protocol=TCP]", after: `{"port":80}`, wantType: v1alpha1.DriftUnexpected, wantClass: v1alpha1.ClassNetworking},
		"a role's rules":                             {kind: "Role", path: "/rules", before: `[]`, after: `[{"verbs":["*"]}]`, wantType: v1alpha1.DriftOther, wantClass: v1alpha1.ClassSecurity},
		"a cron job's template":                      {kind: "CronJob", path: "/spec/jobTemplate/spec/template/spec/containers/[name=a]/command", before: `["a"]`, after: `["b"]`, wantType: v1alpha1.DriftOther, wantClass: v1alpha1.ClassExecution},
		"a cron job suspended":                       {kind: "CronJob", path: "/spec/suspend", before: `false`, after: `true`, wantType: v1alpha1.DriftScale, wantClass: v1alpha1.ClassScale},
		"a label called template":                    {path: "/spec/selector/matchLabels/template", before: `"a"`, after: `"b"`, wantType: v1alpha1.DriftOther, wantClass: v1alpha1.ClassOther},
		"data of a ConfigMap":                        {kind: "ConfigMap", path: "/data/a", before: `"x"`, after: `"y"`, wantType: v1alpha1.DriftOther, wantClass: v1alpha1.ClassOther},
	}
	kinds := map[string]canon.GVK{
		"":          {Group: "apps", Version: "v1", Kind: "Deployment"},
		"Rollout":   {Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"},
		"Pod":       {Version: "v1", Kind: "Pod"},
		"Service":   {Version: "v1", Kind: "Service"},
		"ConfigMap": {Version: "v1", Kind: "ConfigMap"},
		"Role":      {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
		"CronJob":   {Group: "batch", Version: "v1", Kind: "CronJob"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := diff.Change{Path: mustPath(t, tc.path), Op: diff.Changed}
			if tc.before != "" {
				c.Before = []byte(tc.before)
			} else {
				c.Op = diff.Added
			}
			if tc.after != "" {
				c.After = []byte(tc.after)
			} else {
				c.Op = diff.Removed
			}
			gotType, gotClass := ClassifyChange(kinds[tc.kind], c)
			if gotType != tc.wantType || gotClass != tc.wantClass {
				t.Errorf("%s/%s, want %s/%s", gotType, gotClass, tc.wantType, tc.wantClass)
			}
		})
	}
}

func TestSizeHidesNothing(t *testing.T) {
	var after []byte
	after = append(after, `{"a":[1`...)
	for range maxClassifiedValues {
		after = append(after, ",1"...)
	}
	after = append(after, `]}`...)
	c := diff.Change{Path: mustPath(t, "/spec/x"), Op: diff.Added, After: after}
	if _, class := ClassifyChange(canon.GVK{Group: "x.example", Kind: "X"}, c); class != v1alpha1.ClassSecurity {
		t.Errorf("class %s", class)
	}
}

func TestImageRepository(t *testing.T) {
	for reference, want := range map[string]string{
		"nginx":                                 "docker.io/library/nginx",
		"nginx:1.27":                            "docker.io/library/nginx",
		"library/nginx":                         "docker.io/library/nginx",
		"index.docker.io/nginx@sha256:aa":       "docker.io/library/nginx",
		"shop/web":                              "docker.io/shop/web",
		"localhost/web:1":                       "localhost/web",
		"localhost:5000/web":                    "localhost:5000/web",
		"registry.example:5000/shop/web:1":      "registry.example:5000/shop/web",
		"registry.example:5000/web@sha256:aa":   "registry.example:5000/web",
		"Registry.Example/web:1@sha256:aa":      "registry.example/web",
		"registry.example/shop/web/deep:v1.2.3": "registry.example/shop/web/deep",
		"":                                      "docker.io/library/",
	} {
		if got := imageRepository(reference); got != want {
			t.Errorf("%q: %q, want %q", reference, got, want)
		}
	}
}
