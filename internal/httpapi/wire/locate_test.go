// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestAFieldOfAKindIsLocatedInTheSpellingOfTheAPI(t *testing.T) {
	tests := map[string]struct {
		locate      func(string) string
		field, want string
	}{
		"a field of the same name":                {LocatePolicy, "spec.trigger", "body.trigger"},
		"a field of another name":                 {LocatePolicy, "spec.safety.maxPerHour", "body.maxRemediationsPerHour"},
		"an object that the API does not have":    {LocatePolicy, "spec.schedule", "body"},
		"a field of such an object":               {LocatePolicy, "spec.schedule.allowedStart", "body.allowedStartTime"},
		"an item of a list":                       {LocatePolicy, "spec.schedule.allowedDays[2]", "body.allowedDays[2]"},
		"a field of an item":                      {LocatePolicy, "spec.notifications.channels[1].destination", "body.notifications.channels[1].destination"},
		"a field that is copied by hand":          {LocatePolicy, "spec.schedule.maintenanceWindow.timeZone", "body.maintenanceWindow.timezone"},
		"a field that the API does not have":      {LocatePolicy, "spec.schedule.maintenanceWindow.more", "body.maintenanceWindow"},
		"a field that no kind has":                {LocatePolicy, "spec.none.here", "body"},
		"the spec":                                {LocatePolicy, "spec", "body"},
		"no field":                                {LocatePolicy, "", "body"},
		"the name of the object":                  {LocatePolicy, "metadata.name", "body.name"},
		"the namespace of the object":             {LocateRelease, "metadata.namespace", "body.namespace"},
		"a variation by its name":                 {LocateRelease, "spec.variations[1].name", "body.variations[1].variation"},
		"the stable variation":                    {LocateRelease, "spec.stable", "body.variations"},
		"a cookie":                                {LocateRelease, "spec.trafficSplit.sticky.cookie", "body.trafficSplit.stickyKey"},
		"the domain of a cookie":                  {LocateRelease, "spec.trafficSplit.sticky.domain", "body.trafficSplit.cookieDomain"},
		"a stage of the strategy of a release":    {LocateRelease, "spec.rollout.strategy.stages[0].duration", "body.rolloutStrategy.stages[0].durationSeconds"},
		"the strategy of a release":               {LocateRelease, "spec.rollout.strategy", "body.rolloutStrategy"},
		"the name of the strategy of a release":   {LocateRelease, "spec.rollout.strategyName", "body.rolloutStrategy.name"},
		"a percentage":                            {LocateRelease, "spec.trafficSplit.percentages[next]", "body.trafficSplit.percentages[next]"},
		"the reason of a verb":                    {LocateVerb, "spec.control.reason", "body.reason"},
		"the stage of a verb":                     {LocateVerb, "spec.rollout.control.stage", "body.stageNumber"},
		"groups of a verb":                        {LocateVerb, "spec.requestedByGroups[3]", "body.groups"},
		"a field that the body of a verb has not": {LocateVerb, "spec.mode", "body"},
		"no field of a verb":                      {LocateVerb, "", "body"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.locate(tc.field); got != tc.want {
				t.Errorf("%s is at %s, want %s", tc.field, got, tc.want)
			}
		})
	}
}

// leaves lists the paths of all fields of a kind, with an index for each list.
func leaves(t reflect.Type, path string) (paths []string) {
	isList := t.Kind() == reflect.Slice
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if isList && t.Kind() == reflect.Struct {
		path += "[0]"
	}
	if t.Kind() != reflect.Struct || !strings.HasSuffix(t.PkgPath(), "/v1alpha1") || t.NumField() == 0 || t == reflect.TypeFor[v1alpha1.Percentage]() {
		return []string{path}
	}
	for _, f := range reflect.VisibleFields(t) {
		if name := nameOf(&f); name != "" {
			paths = append(paths, leaves(f.Type, path+"."+name)...)
		}
	}
	return paths
}

// Each place that a problem names is a field that a caller can send.
func TestEachFieldOfAKindIsLocatedAtAFieldOfTheAPI(t *testing.T) {
	for name, tc := range map[string]struct {
		ours, kind reflect.Type
		locate     func(string) string
		// nowhere are the fields that the API has not.
		nowhere []string
	}{
		"policies": {reflect.TypeFor[Policy](), reflect.TypeFor[v1alpha1.RemediationPolicySpec](), LocatePolicy, nil},
		"releases": {reflect.TypeFor[Release](), reflect.TypeFor[v1alpha1.ABReleaseSpec](), LocateRelease, nil},
	} {
		var nowhere []string
		for _, field := range leaves(tc.kind, "spec") {
			location := tc.locate(field)
			if location == body {
				nowhere = append(nowhere, field)
				continue
			}
			at := tc.ours
			for segment := range strings.SplitSeq(strings.TrimPrefix(location, body+"."), ".") {
				segment, _, _ = strings.Cut(segment, "[")
				if at = fieldNamed(at, segment); at == nil {
					t.Errorf("%s is located at %s: %s has no field %s", field, location, name, segment)
					break
				}
			}
		}
		slices.Sort(nowhere)
		if diff := cmp.Diff(tc.nowhere, nowhere); diff != "" {
			t.Errorf("%s without a place (-want +got):\n%s", name, diff)
		}
	}
}
