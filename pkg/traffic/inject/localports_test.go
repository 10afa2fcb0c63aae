// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

func TestLocalPortsAreReadAs(t *testing.T) {
	var many []string
	for i := range maxLocalPorts + 1 {
		many = append(many, fmt.Sprintf("%d=web", 2000+i))
	}
	tests := map[string]struct {
		text  string
		want  string
		wrong string
	}{
		"nothing":                                {"", "", ""},
		"one of the pod's namespace":             {"8001=web", "8001=web", ""},
		"those that the documentation shows":     {"8001=web, 8002=pay/api:8080", "8001=web 8002=pay/api:8080", ""},
		"sorted, whatever the spaces":            {" 8002=b ,8001 = a,", "8001=a 8002=b", ""},
		"two that lead to one Service":           {"8001=web,8002=web", "8001=web 8002=web", ""},
		"nothing of what is none":                {"8001=web,web", "8001=web", `"web": want local port=service`},
		"the first of two":                       {"8001=web,8001=pay", "8001=web", `"8001=pay": 8001 is given away already`},
		"none that needs a privilege":            {"80=web,1023=web,1024=web", "1024=web", "\"80=web\": the proxy may not listen on 80: take one from 1024 on"},
		"none of the proxy's":                    {"15000=a,15001=b,15021=c,15002=d", "15002=d", `"15000=a": 15000 belongs to the proxy`},
		"no number beyond the last":              {"65536=web", "", `"65536" is no port`},
		"no port 0":                              {"0=web,8001=web:0", "", `"0" is no port`},
		"no Service without a name":              {"8001=,8002=pay/", "", `"" is no name of a Service`},
		"no namespace without a name":            {"8001=/web", "", `"" is no namespace`},
		"no host name":                           {"8001=web.shop.svc", "", `"web.shop.svc" is no name of a Service`},
		"no port by its name":                    {"8001=web:http", "", `"http" is no port`},
		"no more than a pod may ask for":         {strings.Join(many, ","), strings.ReplaceAll(strings.Join(many[:maxLocalPorts], ","), ",", " "), "there are more than 100"},
		"nothing of all namespaces":              {"8001=pay/*", "", `"*" is no name of a Service`},
		"nothing of what is long, but shortened": {strings.Repeat("x", 100), "", strings.Repeat("x", 60) + "..."},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ports, wrong := ParseLocalPorts(tc.text)
			var got []string
			for _, p := range ports {
				got = append(got, p.String())
			}
			if d := cmp.Diff(tc.want, strings.Join(got, " ")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if err := errors.Join(wrong...); (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("the error is %v, want %q in it", err, tc.wrong)
			}
		})
	}
}

func TestOfALongListOfMistakesTheFirstTenAreTold(t *testing.T) {
	ports, wrong := ParseLocalPorts("8001=web," + strings.Repeat("x,", 100_000) + "8002=web")
	if len(ports) != 1 || len(wrong) != maxWrong+1 {
		t.Errorf("there are %d ports and %d mistakes, want 1 and %d", len(ports), len(wrong), maxWrong+1)
	}
	if last := wrong[len(wrong)-1].Error(); last != `"x", and the rest, is not read` {
		t.Errorf("the last one says %s", last)
	}
}

func TestLocalPortsReadAsTheyAreWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([0-9]{1,5}=([a-z]{0,3}/)?[a-z-]{0,3}(:[0-9]{1,4})?,){0,4}`).Draw(t, "annotation")
		first, _ := ParseLocalPorts(text)
		var written []string
		for _, p := range first {
			written = append(written, p.String())
		}
		again, wrong := ParseLocalPorts(strings.Join(written, ","))
		if d := cmp.Diff(first, again); d != "" || len(wrong) > 0 {
			t.Fatalf("%q: %v\n%s", written, wrong, d)
		}
	})
}

func TestLocalPortsOfAPodThatAsks(t *testing.T) {
	listening := func(protocol corev1.Protocol) *corev1.Pod {
		return askingPod(func(p *corev1.Pod) {
			p.Annotations[AnnotationLocalPorts] = "8001=web"
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8001, Protocol: protocol}}
		})
	}
	redirected := annotated(AnnotationLocalPorts, "x")
	redirected.Labels[LabelMode] = string(Redirect)
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want Reason
	}{
		"that can be read":                   {annotated(AnnotationLocalPorts, "8001=web"), Asked},
		"that cannot":                        {annotated(AnnotationLocalPorts, "8001=web,x"), WrongValue},
		"that cannot, and have no meaning":   {redirected, Asked},
		"of which a container has one":       {listening(""), PortTaken},
		"of which a container has one's UDP": {listening(corev1.ProtocolUDP), Asked},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(tc.pod, nil, installation()); got.Reason != tc.want {
				t.Errorf("%s (%s), want %s", got.Reason, got.Message, tc.want)
			}
		})
	}
}
