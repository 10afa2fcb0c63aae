// SPDX-License-Identifier: Apache-2.0

package wording

import "testing"

func TestAPathIsShortenedForATable(t *testing.T) {
	cases := map[string]struct{ path, field, last string }{
		"a field of the spec":             {"/spec/replicas", "replicas", "replicas"},
		"the spec itself":                 {"/spec", "spec", "spec"},
		"a field of a container":          {"/spec/template/spec/containers/[name=app]/image", "containers[app].image", "image"},
		"a container":                     {"/spec/template/spec/containers/[name=audit]", "containers[audit]", "containers[audit]"},
		"a label of the pod template":     {"/spec/template/metadata/labels/app", "template.metadata.labels.app", "app"},
		"a container of a CronJob":        {"/spec/jobTemplate/spec/template/spec/containers/[name=app]/image", "containers[app].image", "image"},
		"an element with two keys":        {"/spec/ports/[port=80,protocol=TCP]/targetPort", "ports[80,TCP].targetPort", "targetPort"},
		"a key with dots":                 {"/data/app.conf", "data[app.conf]", "data[app.conf]"},
		"a key with a slash":              {"/spec/template/metadata/annotations/a~1b", "template.metadata.annotations[a/b]", "annotations[a/b]"},
		"a position in a list":            {"/spec/args/0", "args[0]", "args[0]"},
		"the object":                      {"", "(object)", "(object)"},
		"a text that is not a path stays": {"spec.replicas", "spec.replicas", "spec.replicas"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := NameField(tc.path); got != tc.field {
				t.Errorf("the field of %q is %q, want %q", tc.path, got, tc.field)
			}
			if got := NameLastField(tc.path); got != tc.last {
				t.Errorf("the last field of %q is %q, want %q", tc.path, got, tc.last)
			}
		})
	}
}

func TestAServiceAccountIsNamedByNamespaceAndName(t *testing.T) {
	for user, want := range map[string]string{
		"system:serviceaccount:ci:deployer":     "ci/deployer (service account)",
		"alice":                                 "alice",
		"":                                      Unknown,
		"system:serviceaccount:ci":              "system:serviceaccount:ci",
		"system:serviceaccount:ci/x:deployer":   "system:serviceaccount:ci/x:deployer",
		"system:serviceaccount:ci:a (of a) bee": "system:serviceaccount:ci:a (of a) bee",
	} {
		if got := NameWriter(user); got != want {
			t.Errorf("the writer %q is named %q, want %q", user, got, want)
		}
	}
}

func TestAValueIsShownWithoutQuotesUnlessWide(t *testing.T) {
	cases := map[string]struct {
		value string
		wide  bool
		want  string
	}{
		"a string":              {`"nginx:1.28"`, false, "nginx:1.28"},
		"a string, wide":        {`"nginx:1.28"`, true, `"nginx:1.28"`},
		"a number":              {"5", false, "5"},
		"an empty string":       {`""`, false, `""`},
		"a cut string":          {`"nginx:1.`, false, `"nginx:1.`},
		"a value that is long":  {`"0123456789abcdef"`, false, "0123456789a…"},
		"a value that moves":    {`"a\u001b[31m"`, false, "a\ufffd[31m"},
		"a long value, if wide": {`"0123456789abcdef"`, true, `"0123456789abcdef"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := FormatValue(tc.value, 12, tc.wide); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
