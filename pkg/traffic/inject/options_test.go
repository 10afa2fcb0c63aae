// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// FuzzExclusions: whatever a user writes, the binary that sets the rules is given
// ports and ranges only, and always the same for the same meaning.
func FuzzExclusions(f *testing.F) {
	f.Add("5432,6379", "10.0.0.0/8")
	f.Add(" 1 , 1,65535", "::/0, 192.168.7.9/16")
	f.Add("80 --proxy-uid=0", "0.0.0.0/0\n")
	f.Add("+80,0x50,080", "10.1/16,fe80::%eth0/64,::ffff:10.0.0.0/104")
	f.Fuzz(func(t *testing.T, ports, ranges string) {
		read := func(ports, ranges string) ([]string, bool) {
			pod := annotated(AnnotationExcludePorts, ports)
			pod.Annotations[AnnotationExcludeCIDRs] = ranges
			o, err := optionsOf(pod, installation().withDefaults())
			return redirectContainer(installation().withDefaults(), o).Args, err == nil
		}
		args, ok := read(ports, ranges)
		if !ok {
			return
		}
		_, outPorts, _ := strings.Cut(args[3], "=")
		_, outRanges, _ := strings.Cut(args[4], "=")
		if strings.Trim(outPorts, "0123456789,") != "" || strings.Trim(outRanges, "0123456789abcdef.:/,") != "" {
			t.Errorf("%q", args)
		}
		again, ok := read(outPorts, outRanges)
		if diff := cmp.Diff(args, again); !ok || diff != "" {
			t.Errorf("read again (-want +got):\n%s", diff)
		}
	})
}

func TestExclusionsAreSortedAndOnce(t *testing.T) {
	pod := annotated(AnnotationExcludePorts, "6379,80, 6379")
	pod.Annotations[AnnotationExcludeCIDRs] = "fd00::1/8,10.9.9.9/8,10.0.0.0/8"
	o, err := optionsOf(pod, installation().withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uint16{80, 6379}, o.excludePorts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	if diff := cmp.Diff(want, o.excludeCIDRs, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatTheProxyRequestsFollowsTheClassOfThePod(t *testing.T) {
	of := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("1Gi")}
	}
	for name, tc := range map[string]struct {
		init, app corev1.ResourceRequirements
		want      string
	}{
		"a pod that requests nothing":                {want: "50m"},
		"one that may use more than it requests":     {app: corev1.ResourceRequirements{Requests: of("1"), Limits: of("2")}, init: corev1.ResourceRequirements{Limits: of("1")}, want: "50m"},
		"a guaranteed one, by its limits":            {app: corev1.ResourceRequirements{Limits: of("2")}, init: corev1.ResourceRequirements{Limits: of("1")}, want: "1"},
		"a limit of zero is none":                    {app: corev1.ResourceRequirements{Limits: of("0")}, init: corev1.ResourceRequirements{Limits: of("1")}, want: "50m"},
		"an init container without limits spoils it": {app: corev1.ResourceRequirements{Limits: of("2")}, want: "50m"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := askingPod(func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources = tc.app
				p.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: tc.init}}
			})
			got := keepGuaranteed(pod, defaultResources())
			if cpu := got.Requests[corev1.ResourceCPU]; cpu.String() != tc.want {
				t.Errorf("it requests %s of CPU, want %s", &cpu, tc.want)
			}
		})
	}
}

func TestAListOf64ExclusionsIsTheLongest(t *testing.T) {
	for entries, good := range map[int]bool{64: true, 65: false} {
		_, err := optionsOf(annotated(AnnotationExcludePorts, strings.Repeat("80,", entries-1)+"80"), installation().withDefaults())
		if (err == nil) != good {
			t.Errorf("%d entries: %v", entries, err)
		}
	}
}
