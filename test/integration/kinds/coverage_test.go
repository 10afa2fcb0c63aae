// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// index is that of a list or map in the path of a field.
var index = regexp.MustCompile(`\[[^\]]*\]`)

// demandEveryRuleTried demands of each rule that the API server has of a kind,
// below path, that some case is refused by it: such a case fails when the rule is
// gone. A case stands for the rule whose field and message it names.
func demandEveryRuleTried(t *testing.T, kind, path string, cases map[string]specCase) {
	t.Helper()
	for place, messages := range rulesOf(t, kind) {
		if !strings.HasPrefix(place+".", path+".") {
			continue
		}
		for _, message := range messages {
			if !tried(cases, place, message) {
				t.Errorf("no case is refused by the rule of %s at %s: %s", kind, place, message)
			}
		}
	}
}

func tried(cases map[string]specCase, place, message string) bool {
	for _, tc := range cases {
		if len(tc.fields) > 0 && index.ReplaceAllString(tc.fields[0], "[]") == place && strings.Contains(message, tc.message) {
			return true
		}
	}
	return false
}

// rulesOf are the messages of a kind's rules as they are in force, by field.
func rulesOf(t *testing.T, kind string) map[string][]string {
	t.Helper()
	plural := map[string]string{"RemediationPolicy": "remediationpolicies", "RemediationPlan": "remediationplans", "RemediationLedger": "remediationledgers", "RemediationRequest": "remediationrequests", "EffectivenessAssessment": "effectivenessassessments", "ReleaseWork": "releaseworks", "ABRelease": "abreleases"}[kind]
	raw := &unstructured.Unstructured{}
	raw.SetAPIVersion(apiextensionsv1.SchemeGroupVersion.String())
	raw.SetKind("CustomResourceDefinition")
	if err := kube.Get(t.Context(), types.NamespacedName{Name: plural + ".plumbline.dev"}, raw); err != nil {
		t.Fatalf("reading the kind %s: %v", kind, err)
	}
	body, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(body, crd); err != nil {
		t.Fatalf("decoding the kind %s: %v", kind, err)
	}
	rules := map[string][]string{}
	collect(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, "", rules)
	if len(rules) == 0 {
		t.Fatalf("the kind %s has no rules, so this would prove nothing", kind)
	}
	return rules
}

func collect(schema *apiextensionsv1.JSONSchemaProps, path string, into map[string][]string) {
	for _, rule := range schema.XValidations {
		place := strings.TrimPrefix(path+rule.FieldPath, ".")
		into[place] = append(into[place], rule.Message)
	}
	for name, property := range schema.Properties {
		collect(&property, path+"."+name, into)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		collect(schema.Items.Schema, path+"[]", into)
	}
}
