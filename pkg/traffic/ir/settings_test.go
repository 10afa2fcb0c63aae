// SPDX-License-Identifier: Apache-2.0

package ir_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// M2: each setting is an annotation of the Service, and a value that is refused is named.
func TestSettingsAreReadFromAnnotationsOfTheService(t *testing.T) {
	refused := func(annotation, value, fix string) string {
		return `Service shop/web: InvalidSetting: the annotation plumbline.dev/` + annotation + ` has "` + value + `", so the default is active: ` + fix
	}
	tests := map[string]struct {
		annotations map[string]string
		want        ir.Settings
		problems    string
	}{
		"without annotations all are defaults": {},
		"all annotations are read": {
			annotations: map[string]string{
				ir.RequestTimeoutAnnotation: "30s", ir.IdleTimeoutAnnotation: "500ms", ir.ConnectTimeoutAnnotation: "1s500ms", ir.RetriesAnnotation: "off",
			},
			want: ir.Settings{RequestTimeout: 30 * time.Second, IdleTimeout: 500 * time.Millisecond, ConnectTimeout: 1500 * time.Millisecond, RetriesOff: true},
		},
		"the bounds themselves are taken": {
			annotations: map[string]string{ir.RequestTimeoutAnnotation: "24h", ir.IdleTimeoutAnnotation: "1h", ir.ConnectTimeoutAnnotation: "50ms", ir.RetriesAnnotation: "on"},
			want:        ir.Settings{RequestTimeout: 24 * time.Hour, IdleTimeout: time.Hour, ConnectTimeout: 50 * time.Millisecond},
		},
		"a number without a unit is refused": {
			annotations: map[string]string{ir.RequestTimeoutAnnotation: "30"},
			problems:    refused("request-timeout", "30", "set 100ms to 24h, as in 1s500ms, or take it out"),
		},
		"a time below its bound is refused": {
			annotations: map[string]string{ir.IdleTimeoutAnnotation: "99ms"},
			problems:    refused("idle-timeout", "99ms", "set 100ms to 1h, as in 1s500ms, or take it out"),
		},
		"a time above its bound is refused, and the others are taken": {
			annotations: map[string]string{ir.ConnectTimeoutAnnotation: "31s", ir.IdleTimeoutAnnotation: "2s"},
			want:        ir.Settings{IdleTimeout: 2 * time.Second},
			problems:    refused("connect-timeout", "31s", "set 50ms to 30s, as in 1s500ms, or take it out"),
		},
		"a time with a sign is refused": {
			annotations: map[string]string{ir.RequestTimeoutAnnotation: "+1s"},
			problems:    refused("request-timeout", "+1s", "set 100ms to 24h, as in 1s500ms, or take it out"),
		},
		"an empty time is refused": {
			annotations: map[string]string{ir.RequestTimeoutAnnotation: ""},
			problems:    refused("request-timeout", "", "set 100ms to 24h, as in 1s500ms, or take it out"),
		},
		"retries are on or off": {
			annotations: map[string]string{ir.RetriesAnnotation: "false"},
			problems:    refused("retries", "false", "set on or off, or take it out"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			mesh := ir.Build(ir.Inputs{Services: []*corev1.Service{web(func(s *corev1.Service) { s.Annotations = tc.annotations })}})
			if len(mesh.Services) != 1 {
				t.Fatalf("the Service is left alone: %s", problems(mesh))
			}
			if d := cmp.Diff(tc.want, mesh.Services[0].Settings); d != "" {
				t.Errorf("the settings (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.problems, problems(mesh)); d != "" {
				t.Errorf("the problems (-want +got):\n%s", d)
			}
		})
	}
}
