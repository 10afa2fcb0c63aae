// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func mutating() *Object {
	o := Configuration("MutatingWebhookConfiguration", "plumbline", "spec-hash.plumbline.dev")
	o.Metadata = &Metadata{Labels: map[string]string{"app": "plumbline"}}
	return &o
}

func secret() *Object {
	o := Secret("plumbline-system", "plumbline-webhook-tls")
	o.Metadata = &Metadata{Annotations: map[string]string{"who": "us"}}
	return &o
}

func lease() *Object {
	o := Lease("plumbline-system", "plumbline-assessor")
	o.Metadata = &Metadata{}
	return &o
}

// applicationOf makes an Application from the YAML of its spec.
func applicationOf(t interface{ Fatal(args ...any) }, spec string) Application {
	var parsed map[string]any
	if err := yaml.UnmarshalStrict([]byte(spec), &parsed); err != nil {
		t.Fatal(err, spec)
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"namespace": "argocd", "name": "plumbline"}, "spec": parsed})
	if err != nil {
		t.Fatal(err)
	}
	application, err := DecodeApplication(raw)
	if err != nil {
		t.Fatal(err)
	}
	return application
}

const bundlePointer = "/webhooks/0/clientConfig/caBundle"

func TestJudgeArgoCD_RulesOfAnApplication(t *testing.T) {
	const webhooks = "ignoreDifferences: [{group: admissionregistration.k8s.io, kind: MutatingWebhookConfiguration, "
	bundle, data := []string{bundlePointer}, []string{"/data"}
	cases := map[string]struct {
		spec   string
		object *Object
		want   []string
	}{
		"no rules":                                   {"project: default", mutating(), bundle},
		"the jq path of the documentation":           {webhooks + "jqPathExpressions: ['.webhooks[]?.clientConfig.caBundle']}]", mutating(), nil},
		"a jq path for one index":                    {webhooks + "jqPathExpressions: ['.webhooks[0].clientConfig.caBundle']}]", mutating(), nil},
		"a jq path for another index":                {webhooks + "jqPathExpressions: ['.webhooks[1].clientConfig.caBundle']}]", mutating(), bundle},
		"a jq path that selects by our name":         {webhooks + `jqPathExpressions: ['.webhooks[] | select(.name == "spec-hash.plumbline.dev") | .clientConfig.caBundle']}]`, mutating(), nil},
		"a jq path that selects by another name":     {webhooks + `jqPathExpressions: ['.webhooks[] | select(.name == "x") | .clientConfig.caBundle']}]`, mutating(), bundle},
		"a jq path that selects by label":            {webhooks + `jqPathExpressions: ['select(.metadata.labels.app == "plumbline") | .webhooks[].clientConfig.caBundle']}]`, mutating(), nil},
		"two jq paths in one":                        {webhooks + "jqPathExpressions: ['.webhooks[].failurePolicy, .webhooks[].clientConfig.caBundle']}]", mutating(), nil},
		"a jq path that fails here, then one":        {webhooks + "jqPathExpressions: ['.spec[].x', '.webhooks[].clientConfig']}]", mutating(), nil},
		"a jq path for all there is":                 {webhooks + "jqPathExpressions: [.]}]", mutating(), bundle},
		"the kind is ignored too":                    {webhooks + "jsonPointers: [/webhooks, /kind]}]", mutating(), bundle},
		"a jq path that is malformed":                {webhooks + "jqPathExpressions: ['.webhooks[.clientConfig']}]", mutating(), bundle},
		"a pointer":                                  {webhooks + "jsonPointers: [/webhooks/0/clientConfig/caBundle]}]", mutating(), nil},
		"a pointer to more":                          {webhooks + "jsonPointers: [/webhooks]}]", mutating(), nil},
		"a pointer to another field":                 {webhooks + "jsonPointers: [/webhooks/0/failurePolicy]}]", mutating(), bundle},
		"a pointer without its first slash":          {webhooks + "jsonPointers: [webhooks/0/clientConfig/caBundle]}]", mutating(), bundle},
		"any group and kind":                         {"ignoreDifferences: [{group: '*', kind: '*', jsonPointers: [/webhooks/0/clientConfig/caBundle]}]", mutating(), nil},
		"a glob over kinds":                          {"ignoreDifferences: [{group: '*.k8s.io', kind: '{Mutating,Validating}Webhook*', jsonPointers: [/webhooks]}]", mutating(), nil},
		"a glob that is malformed":                   {"ignoreDifferences: [{group: '*', kind: '[Mutating', jsonPointers: [/webhooks]}]", mutating(), bundle},
		"no group is the core group":                 {"ignoreDifferences: [{kind: MutatingWebhookConfiguration, jsonPointers: [/webhooks]}]", mutating(), bundle},
		"our name":                                   {webhooks + "name: plumbline, jsonPointers: [/webhooks]}]", mutating(), nil},
		"another's name":                             {webhooks + "name: istio, jsonPointers: [/webhooks]}]", mutating(), bundle},
		"names are no globs":                         {webhooks + "name: '*', jsonPointers: [/webhooks]}]", mutating(), bundle},
		"another kind":                               {"ignoreDifferences: [{group: admissionregistration.k8s.io, kind: ValidatingWebhookConfiguration, jsonPointers: [/webhooks]}]", mutating(), bundle},
		"a manager says nothing of what is left out": {webhooks + "managedFieldsManagers: [plumbline-webhook]}]", mutating(), bundle},

		"the data of the Secret":                 {"ignoreDifferences: [{kind: Secret, jsonPointers: [/data]}]", secret(), nil},
		"the data of Secrets in its namespace":   {"ignoreDifferences: [{kind: Secret, namespace: plumbline-system, jsonPointers: [/data]}]", secret(), nil},
		"the data of Secrets in another":         {"ignoreDifferences: [{kind: Secret, namespace: shop, jsonPointers: [/data]}]", secret(), data},
		"each of its keys by itself":             {"ignoreDifferences: [{kind: Secret, jsonPointers: [/data/ca.crt, /data/ca.key, /data/tls.crt, /data/tls.key]}]", secret(), nil},
		"some of its keys":                       {"ignoreDifferences: [{kind: Secret, jsonPointers: [/data/ca.crt, /data/tls.crt]}]", secret(), []string{"/data/ca.key", "/data/tls.key"}},
		"some by one rule and some by another":   {"ignoreDifferences: [{kind: Secret, jsonPointers: [/data/ca.crt, /data/tls.crt]}, {kind: '*', jqPathExpressions: ['.data[\"ca.key\", \"tls.key\"]']}]", secret(), nil},
		"all of them by jq":                      {"ignoreDifferences: [{kind: Secret, jqPathExpressions: ['.data[]']}]", secret(), nil},
		"an escape in a pointer that leads away": {"ignoreDifferences: [{kind: Secret, jsonPointers: [/data~1ca.crt]}]", secret(), data},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			application := applicationOf(t, tc.spec)
			got, err := JudgeArgoCD(application.Rules, tc.object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Verdict{Missing: tc.want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestJudgeArgoCD_WhatCannotBeTriedOut(t *testing.T) {
	unread := mutating()
	unread.Metadata, unread.Unread = nil, "your user may not list"
	cases := map[string]struct {
		expression string
		object     *Object
		unjudged   string
	}{
		"it never ends":                           {"last(repeat(.webhooks))", mutating(), "too long"},
		"it is as long as a program":              {".webhooks[0].x" + strings.Repeat("|.", jqLength), mutating(), "too long"},
		"it looks at labels that nobody may read": {`select(.metadata.labels.app == "plumbline") | .webhooks`, unread, "your user may not list"},
		"it needs no labels":                      {".webhooks[].x", unread, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rules := []ArgoCDRule{{Group: "*", Kind: "*", JQPathExpressions: []string{tc.expression}}}
			got, err := JudgeArgoCD(rules, tc.object)
			if err != nil || got.Covered() {
				t.Fatalf("got %+v, %v", got, err)
			}
			if (tc.unjudged == "") != (got.Unjudged == "") || !strings.Contains(got.Unjudged, tc.unjudged) {
				t.Errorf("it says %q, want something with %q", got.Unjudged, tc.unjudged)
			}
			if broken := BrokenArgoCD(rules); len(broken) > 0 {
				t.Errorf("what Argo CD may well read is called broken: %q", broken)
			}
			rules = append(rules, ArgoCDRule{Group: "*", Kind: "*", JSONPointers: []string{bundlePointer}})
			if got, err := JudgeArgoCD(rules, tc.object); err != nil || !got.Covered() || got.Unjudged != "" {
				t.Errorf("beside a rule that covers it: %+v, %v", got, err)
			}
		})
	}
}

func TestBrokenArgoCD_NamesWhatCannotBeRead(t *testing.T) {
	rules := []ArgoCDRule{
		{Kind: "Deployment", JQPathExpressions: []string{".spec.replicas", ".spec["}},
		{Kind: "Secret", JQPathExpressions: []string{".data | nosuchfunction"}, JSONPointers: []string{"not a pointer"}},
	}
	got := BrokenArgoCD(rules)
	if len(got) != 2 || !strings.Contains(got[0], `".spec["`) || !strings.Contains(got[1], "nosuchfunction") {
		t.Errorf("got %q", got)
	}
}

func TestDecodeSettings(t *testing.T) {
	const prefix = "resource.customizations.ignoreDifferences."
	pointers := func(group, kind string, of ...string) ArgoCDRule {
		return ArgoCDRule{Group: group, Kind: kind, JSONPointers: of}
	}
	cases := map[string]struct {
		data map[string]string
		want []ArgoCDRule
		err  string // a part of it
	}{
		"nothing":                  {nil, []ArgoCDRule{}, ""},
		"other settings":           {map[string]string{"url": "https://x", "resource.customizations.health.Secret": "return {"}, []ArgoCDRule{}, ""},
		"a group and kind":         {map[string]string{prefix + "apps_Deployment": "jsonPointers:\n- /spec/replicas\n"}, []ArgoCDRule{pointers("apps", "Deployment", "/spec/replicas")}, ""},
		"a kind of the core group": {map[string]string{prefix + "Secret": "jsonPointers: [/data]"}, []ArgoCDRule{pointers("", "Secret", "/data")}, ""},
		"a group with dots and jq": {map[string]string{prefix + "admissionregistration.k8s.io_MutatingWebhookConfiguration": "jqPathExpressions:\n- .webhooks[]?.clientConfig.caBundle"},
			[]ArgoCDRule{{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration", JQPathExpressions: []string{".webhooks[]?.clientConfig.caBundle"}}}, ""},
		"all":                  {map[string]string{prefix + "all": "jsonPointers: [/data]"}, []ArgoCDRule{pointers("*", "*", "/data")}, ""},
		"an unknown key in it": {map[string]string{prefix + "Secret": "jsonPointer: [/data]"}, []ArgoCDRule{pointers("", "Secret")}, ""},
		"empty":                {map[string]string{prefix + "Secret": ""}, []ArgoCDRule{pointers("", "Secret")}, ""},
		"the older form": {map[string]string{"resource.customizations": "'*.k8s.io/*':\n  ignoreDifferences: |\n    jsonPointers: [/webhooks]\napps/Deployment:\n  health.lua: return 1\n"},
			[]ArgoCDRule{pointers("*.k8s.io", "*", "/webhooks"), pointers("apps", "Deployment")}, ""},
		"both forms of one kind": {map[string]string{
			"resource.customizations": "Secret:\n  ignoreDifferences: |\n    jsonPointers: [/old]\n", prefix + "Secret": "jsonPointers: [/data]"},
			[]ArgoCDRule{pointers("", "Secret", "/data")}, ""},
		"no YAML":                  {map[string]string{prefix + "Secret": "jsonPointers: [/data"}, nil, "key " + prefix + "Secret: "},
		"YAML of another form":     {map[string]string{prefix + "Secret": "- /data"}, nil, "key " + prefix + "Secret: "},
		"a text for a list":        {map[string]string{prefix + "Secret": "jsonPointers: /data"}, nil, "key " + prefix + "Secret: "},
		"a key without kind":       {map[string]string{prefix: "jsonPointers: [/data]"}, nil, "it does not end in"},
		"a key of three parts":     {map[string]string{prefix + "a_b_c": "jsonPointers: [/data]"}, nil, "it does not end in"},
		"no YAML in the older one": {map[string]string{"resource.customizations": "Secret: ["}, nil, "key resource.customizations: "},
		"no YAML inside of it":     {map[string]string{"resource.customizations": "Secret: {ignoreDifferences: '['}"}, nil, "key resource.customizations: Secret: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeSettings(tc.data)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want one with %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestApplication_Installs(t *testing.T) {
	o := mutating()
	listed := []string{"admissionregistration.k8s.io/MutatingWebhookConfiguration/plumbline"}
	id := ":admissionregistration.k8s.io/MutatingWebhookConfiguration:plumbline-system/plumbline"
	cases := map[string]struct {
		application Application
		tracking    string
		want        bool
	}{
		"the annotation names it":                           {Application{Namespace: "argocd", Name: "a"}, "a" + id, true},
		"the annotation names it with its namespace":        {Application{Namespace: "team", Name: "a"}, "team_a" + id, true},
		"the annotation names another":                      {Application{Namespace: "argocd", Name: "b", InCluster: true, Applied: listed}, "a" + id, false},
		"the annotation was copied from another object":     {Application{Namespace: "argocd", Name: "a"}, "a:apps/Deployment:x/y", false},
		"it lists the object":                               {Application{Name: "a", InCluster: true, Applied: listed}, "", true},
		"it lists the object of another cluster":            {Application{Name: "a", Applied: listed}, "", false},
		"it lists others":                                   {Application{Name: "a", InCluster: true, Applied: []string{"/Secret/x"}}, "", false},
		"the annotation was copied and it lists the object": {Application{Name: "a", InCluster: true, Applied: listed}, "b:apps/Deployment:x/y", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.application.Installs(o, tc.tracking); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestDecodeApplication(t *testing.T) {
	got, err := DecodeApplication([]byte(`{"metadata":{"namespace":"argocd","name":"p","uid":"1"},"spec":{"destination":{"server":"https://kubernetes.default.svc"},
		"syncPolicy":{"automated":{"prune":true},"syncOptions":["CreateNamespace=true","RespectIgnoreDifferences=true"]},
		"ignoreDifferences":[{"kind":"Secret","jsonPointers":["/data"],"managedFieldsManagers":["x"]}]},
		"status":{"resources":[{"group":"g","version":"v1","kind":"K","name":"n","status":"Synced"}]}}`))
	want := Application{Namespace: "argocd", Name: "p", InCluster: true, Respects: true, Applied: []string{"g/K/n"},
		Rules: []ArgoCDRule{{Kind: "Secret", JSONPointers: []string{"/data"}}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for name, raw := range map[string]string{"no JSON": `{`, "a text for a list": `{"spec":{"ignoreDifferences":"x"}}`} {
		if _, err := DecodeApplication([]byte(raw)); err == nil {
			t.Errorf("%s was decoded", name)
		}
	}
	off, err := DecodeApplication([]byte(`{"spec":{"destination":{"name":"in-cluster"},"syncPolicy":{"syncOptions":["RespectIgnoreDifferences=false"]}}}`))
	if err != nil || off.Respects || !off.InCluster {
		t.Errorf("got %+v, %v", off, err)
	}
}
