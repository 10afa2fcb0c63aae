// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// expressionsOf are the CEL expressions of an object, by where they stand.
func expressionsOf(object *unstructured.Unstructured) map[string]string {
	found := map[string]string{}
	var walk func(at string, value any)
	walk = func(at string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for key, child := range v {
				if text, ok := child.(string); ok && strings.HasSuffix(strings.ToLower(key), "expression") {
					found[at+"/"+key] = text
					continue
				}
				walk(at+"/"+key, child)
			}
		case []any:
			for _, child := range v {
				name := ""
				if m, ok := child.(map[string]any); ok {
					name, _ = m["name"].(string)
				}
				walk(at+"/"+name, child)
			}
		}
	}
	walk(object.GetKind()+"/"+object.GetName(), object.Object)
	return found
}

var (
	// loop finds what an expression goes through: a macro and its range.
	loop = regexp.MustCompile(`([\w.?()\[\]{}", /-]*)\.(?:exists|exists_one|all|filter|map)\(`)
	// filled finds the parts of an object that its writer fills as he likes.
	filled = regexp.MustCompile(`\b(annotations|labels|ownerReferences|finalizers|managedFields)\b`)
	// bounded finds the test of a size that makes a loop safe.
	bounded = regexp.MustCompile(`\b(annotations|labels|ownerReferences|managedFields)\b[^&|]*\.size\(\) (?:<=|>) \d+`)
)

// H1 of the guard's review: an expression that went through the annotations of an
// object took the API server ten times as long for every write.
func TestNoExpressionLoopsOverWhatATenantFillsWithoutABound(t *testing.T) {
	forEachValuesFile(t, func(t *testing.T, objects []*unstructured.Unstructured) {
		looked := 0
		for _, object := range objects {
			for at, text := range expressionsOf(object) {
				looked++
				for _, match := range loop.FindAllStringSubmatch(text, -1) {
					part := filled.FindString(match[1])
					if part == "" {
						continue
					}
					sizes := bounded.FindAllStringSubmatch(text, -1)
					if !slices.ContainsFunc(sizes, func(size []string) bool { return size[1] == part }) {
						t.Errorf("%s goes through %s without a bound: %s", at, part, match[0])
					}
				}
			}
		}
		if looked < 10 {
			t.Errorf("only %d expressions were looked at", looked)
		}
	})
}

func TestALoopOverAnnotationsIsSeen(t *testing.T) {
	for text, want := range map[string]bool{
		`object.metadata.?annotations.orValue({}).exists(k, k.startsWith("a"))`:                                            true,
		`["a", "b"].exists(k, object.metadata.?annotations[?k] != oldObject.metadata.?annotations[?k])`:                    false,
		`oldObject.metadata.?ownerReferences.orValue([]).all(o, o.?controller.orValue(false))`:                             true,
		`object.exists(k, !(k in ["metadata"]))`:                                                                           false,
		`(oldObject == null ? object : oldObject).metadata.?ownerReferences.orValue([]).exists(o, o.kind == "Deployment")`: true,
	} {
		got := false
		for _, match := range loop.FindAllStringSubmatch(text, -1) {
			got = got || filled.MatchString(match[1])
		}
		if got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// The chart writes the list down once more, because templates cannot call Go.
func TestTheChartKnowsEachAnnotationOfGuardedObjects(t *testing.T) {
	want := []string{
		v1alpha1.AnnotationBreakGlassReason, v1alpha1.AnnotationResyncPeriod, v1alpha1.AnnotationSpecHash,
		v1alpha1.AnnotationWriter, v1alpha1.AnnotationWriterGroups,
		v1alpha1.AnnotationApplied, v1alpha1.AnnotationApplier, v1alpha1.AnnotationApplierGroups,
	}
	slices.Sort(want)
	policy := find(t, template(t), "ValidatingAdmissionPolicy", "plumbline-stamp-status")
	key := regexp.MustCompile(`"(plumbline\.dev/[a-z-]+)"`)
	keys := map[string]bool{}
	for _, text := range expressionsOf(policy) {
		for _, match := range key.FindAllStringSubmatch(text, -1) {
			keys[match[1]] = true
		}
	}
	if got := slices.Sorted(maps.Keys(keys)); !slices.Equal(got, want) {
		t.Errorf("the chart protects %v, want %v", got, want)
	}
}

// An apply of the live value moves its stamp alone, and costs no call.
func TestNoWebhookIsCalledForAStampOfAnApply(t *testing.T) {
	objects := template(t)
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		conditions := expressionsOf(find(t, objects, kind, "plumbline"))
		if len(conditions) == 0 {
			t.Errorf("%s has no condition", kind)
		}
		for at, text := range conditions {
			if strings.Contains(text, "plumbline.dev/appli") || strings.Contains(text, "last-applied") {
				t.Errorf("%s looks at the stamp: %s", at, text)
			}
		}
	}
}
