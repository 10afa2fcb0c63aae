// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// installation is that of the tests and of the golden files.
func installation() Config {
	return Config{
		ProxyImage:    "docker.io/envoyproxy/envoy:distroless-v1.40.0",
		RedirectImage: "docker.io/example/redirect:1",
		Bootstrap:     BootstrapConfig{XDSHost: "plumbline-xds.plumbline-system.svc", XDSPort: 15010},
	}
}

// askingPod has one container and asks for a proxy.
func askingPod(change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{LabelInject: Enabled}, Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}},
	}
	change(pod)
	return pod
}

func annotated(name, value string) *corev1.Pod {
	return askingPod(func(p *corev1.Pod) { p.Annotations[name] = value })
}

func TestWhoGetsAProxy(t *testing.T) {
	labeled := func(value string) *corev1.Pod {
		return askingPod(func(p *corev1.Pod) { p.Labels[LabelInject] = value })
	}
	silent := askingPod(func(p *corev1.Pod) { delete(p.Labels, LabelInject) })
	for name, tc := range map[string]struct {
		pod       *corev1.Pod
		namespace map[string]string
		config    func(*Config)
		want      Decision
	}{
		"a pod that asks":                  {pod: labeled(Enabled), want: Decision{Outcome: Inject, Reason: Asked, Mode: Explicit}},
		"nobody asks":                      {pod: silent, want: Decision{Outcome: Leave, Reason: NotAsked}},
		"the namespace asks":               {pod: silent, namespace: map[string]string{LabelInject: Enabled}, want: Decision{Outcome: Inject, Reason: Asked, Mode: Explicit}},
		"the pod holds over the namespace": {pod: labeled(Disabled), namespace: map[string]string{LabelInject: Enabled}, want: Decision{Outcome: Leave, Reason: OptedOut}},
		"the namespace gives the mode":     {pod: labeled(Enabled), namespace: map[string]string{LabelMode: "redirect"}, want: Decision{Outcome: Inject, Reason: Asked, Mode: Redirect}},
		"the installation gives the mode":  {pod: labeled(Enabled), config: func(c *Config) { c.Mode = Redirect }, want: Decision{Outcome: Inject, Reason: Asked, Mode: Redirect}},
		"an empty word of the namespace":   {pod: silent, namespace: map[string]string{LabelInject: ""}, want: Decision{Outcome: Leave, Reason: NotAsked}},
	} {
		t.Run(name, func(t *testing.T) {
			c := installation()
			if tc.config != nil {
				tc.config(&c)
			}
			if diff := cmp.Diff(tc.want, Decide(tc.pod, tc.namespace, c)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func containing(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name}) }
}

func startingWith(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: name})
	}
}

// injectedPod has a proxy already.
func injectedPod(change func(*corev1.Pod)) *corev1.Pod {
	return askingPod(func(p *corev1.Pod) {
		p.Labels[LabelProxy] = string(Explicit)
		p.Spec.InitContainers = []corev1.Container{{Name: ProxyContainer, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
		change(p)
	})
}

func TestNamespacesThatAskForIstio(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		want   bool
	}{
		"no label":                         {nil, false},
		"the label of injection":           {map[string]string{"istio-injection": "enabled"}, true},
		"a revision":                       {map[string]string{"istio.io/rev": "1-27"}, true},
		"a revision, and injection is off": {map[string]string{"istio-injection": "disabled", "istio.io/rev": "1-27"}, false},
		"ambient":                          {map[string]string{"istio.io/dataplane-mode": "ambient"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := AsksForIstio(tc.labels); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}

func TestWhoAskedAndCannotHaveOne(t *testing.T) {
	redirected := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := askingPod(change)
		pod.Labels[LabelMode] = string(Redirect)
		return pod
	}
	listening := func(port int32, protocol corev1.Protocol) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, Protocol: protocol}}
		}
	}
	excluding := func(annotation, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations[annotation] = value }
	}
	proxyUser := func(p *corev1.Pod) {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(defaultUID))}
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want Reason
	}{
		"a word that is none":              {askingPod(func(p *corev1.Pod) { p.Labels[LabelInject] = "true" }), WrongValue},
		"an empty word":                    {askingPod(func(p *corev1.Pod) { p.Labels[LabelInject] = "" }), WrongValue},
		"a mode that is none":              {askingPod(func(p *corev1.Pod) { p.Labels[LabelMode] = "tproxy" }), WrongValue},
		"the network of the node":          {askingPod(func(p *corev1.Pod) { p.Spec.HostNetwork = true }), HostNetwork},
		"a static pod":                     {annotated(corev1.MirrorPodAnnotationKey, "x"), MirrorPod},
		"Windows":                          {askingPod(func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }), Windows},
		"the node's DNS":                   {askingPod(func(p *corev1.Pod) { p.Spec.DNSPolicy = corev1.DNSDefault }), NoClusterDNS},
		"a container of the proxy's name":  {askingPod(func(p *corev1.Pod) { p.Spec.Containers[0].Name = ProxyContainer }), NameTaken},
		"a container that sets the rules":  {askingPod(func(p *corev1.Pod) { p.Spec.Containers[0].Name = RedirectContainer }), NameTaken},
		"an injected mark without a proxy": {askingPod(func(p *corev1.Pod) { p.Labels[LabelProxy] = "explicit" }), Asked},
		"a volume of ours": {askingPod(func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: Volume}}
		}), NameTaken},
		"a proxy of Istio":                     {askingPod(containing(istioProxy)), OtherMesh},
		"a proxy of Istio as a sidecar":        {askingPod(startingWith(istioProxy)), OtherMesh},
		"a proxy of Istio beside its own":      {injectedPod(containing(istioProxy)), OtherMesh},
		"a proxy of Linkerd":                   {askingPod(containing(linkerdProxy)), Asked},
		"a proxy of Linkerd, redirected":       {redirected(containing(linkerdProxy)), OtherMesh},
		"the status port":                      {askingPod(listening(StatusPort, "")), PortTaken},
		"the status port, but UDP":             {askingPod(listening(StatusPort, corev1.ProtocolUDP)), Asked},
		"the capture port, which is needed":    {redirected(listening(CapturePort, corev1.ProtocolTCP)), PortTaken},
		"the capture port, which is not":       {askingPod(listening(CapturePort, corev1.ProtocolTCP)), Asked},
		"the proxy's user, redirected":         {redirected(proxyUser), RunsAsTheProxy},
		"the proxy's user, without privilege":  {askingPod(proxyUser), Asked},
		"no number of threads":                 {annotated(AnnotationConcurrency, "two"), WrongValue},
		"too many threads":                     {annotated(AnnotationConcurrency, "65"), WrongValue},
		"no quantity":                          {annotated(AnnotationCPU, "much"), WrongValue},
		"nothing of CPU":                       {annotated(AnnotationCPULimit, "0"), WrongValue},
		"a request over the limit":             {annotated(AnnotationCPU, "9"), WrongValue},
		"a limit that is not enough for Envoy": {annotated(AnnotationMemoryLimit, "64Mi"), WrongValue},
		"port 0":                               {annotated(AnnotationExcludePorts, "80,0"), WrongValue},
		"a hole in a list":                     {annotated(AnnotationExcludePorts, "80,,81"), WrongValue},
		"an address that is no range":          {annotated(AnnotationExcludeCIDRs, "10.0.0.1"), WrongValue},
		"the capture port, excluded":           {redirected(excluding(AnnotationExcludePorts, "15001")), WrongValue},
		"a range that is not redirected":       {redirected(excluding(AnnotationExcludeCIDRs, "fd00::/8")), WrongValue},
		"an IPv4 range in IPv6 words":          {redirected(excluding(AnnotationExcludeCIDRs, "::ffff:10.0.0.0/104")), Asked},
		"an option of the binary in a list":    {annotated(AnnotationExcludeCIDRs, "10.0.0.0/8 --proxy-uid=0"), WrongValue},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(tc.pod, nil, installation())
			if got.Reason != tc.want {
				t.Errorf("%s (%s), want %s", got.Reason, got.Message, tc.want)
			}
			if refused := tc.want != Asked; refused != (got.Outcome == Refuse) || refused != (got.Message != "") {
				t.Errorf("the outcome is %s, the message %q", got.Outcome, got.Message)
			}
		})
	}
}

func TestAModeWithoutAnImageIsRefused(t *testing.T) {
	c := installation()
	c.RedirectImage = ""
	pod := askingPod(func(p *corev1.Pod) { p.Labels[LabelMode] = string(Redirect) })
	if got := Decide(pod, nil, c); got.Outcome != Refuse || got.Reason != ModeUnavailable {
		t.Errorf("%+v", got)
	}
}

func TestAnAddressNeedsNoDNS(t *testing.T) {
	c := installation()
	c.Bootstrap.XDSHost = "10.96.0.20"
	pod := askingPod(func(p *corev1.Pod) { p.Spec.DNSPolicy = corev1.DNSDefault })
	if got := Decide(pod, nil, c); got.Outcome != Inject {
		t.Errorf("%+v", got)
	}
}
