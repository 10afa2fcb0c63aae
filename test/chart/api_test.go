// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/internal/serve"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

const withAPI = "api.enabled=true"

func TestWithoutTheAPINothingOfItIsInstalled(t *testing.T) {
	for _, object := range template(t) {
		if strings.HasPrefix(object.GetName(), "plumbline-api") {
			t.Errorf("the chart makes %s", rendered.ID(object))
		}
	}
}

// The objects that are added when the API is served: it reads Plumbline's kinds without bodies, and writes its certificate.
func TestWhoMayDoWhatWhenTheAPIIsServed(t *testing.T) {
	without := rights(t, template(t))
	with := rights(t, template(t, "--set", withAPI))
	added := slices.DeleteFunc(slices.Clone(with), func(line string) bool { return slices.Contains(without, line) })
	golden.Check(t, filepath.Join("testdata", "rights-api.txt"), strings.Join(added, "\n")+"\n")
	if removed := slices.DeleteFunc(without, func(line string) bool { return slices.Contains(with, line) }); len(removed) > 0 {
		t.Errorf("the API takes rights from others: %q", removed)
	}
	role := convert[rbacv1.ClusterRole](t, find(t, template(t, "--set", withAPI), "ClusterRole", "plumbline-api"))
	for _, rule := range role.Rules {
		for _, hidden := range []string{"baselinerevisions", "secrets", "*"} {
			if slices.Contains(rule.Resources, hidden) {
				t.Errorf("the API may %v %s", rule.Verbs, hidden)
			}
		}
	}
}

// The process takes the arguments, and finds by them the objects of the chart.
func TestTheAPIFindsItsObjects(t *testing.T) {
	for name, values := range map[string][]string{
		"with its own certificate": {"--set", withAPI},
		"with cert-manager":        {"--set", withAPI, "--set", "api.tls.mode=CertManager", "--set", "api.tls.issuerRef.name=internal"},
		"with browsers":            {"--set", withAPI, "--set", "api.sessionKeysSecret=keys"},
		"with an issuer": {
			"--set", withAPI, "--set", "api.sessionKeysSecret=keys", "--set", "api.oidc.issuer=https://id.example.com/realm", "--set", "api.oidc.clientID=plumbline",
			"--set", "api.oidc.credentialsSecret=client", "--set", "outbound.caSecret=outside",
		},
		"with hosts": {"--set", withAPI, "--set", "api.hosts={plumbline.example.com,plumbline.example.com:8443}"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := template(t, values...)
			d := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-api"))
			var o serve.Options
			var of assessor.Options
			fs := flag.NewFlagSet("assessor", flag.ContinueOnError)
			of.AddFlags(fs)
			o.AddFlags(fs)
			if err := fs.Parse(d.Spec.Template.Spec.Containers[0].Args); err != nil {
				t.Fatal(err)
			}
			if errs := o.Validate(); len(errs) > 0 || of.Role != serve.Role {
				t.Fatal(of.Role, errs.ToAggregate())
			}
			if name == "with cert-manager" {
				if c := convert[certificate](t, find(t, objects, "Certificate", "plumbline-api")); c.Spec.SecretName != o.TLSSecret || o.CertificateMode != "CertManager" {
					t.Errorf("cert-manager writes %s, and the API reads %s of %s", c.Spec.SecretName, o.TLSSecret, o.CertificateMode)
				}
			} else {
				find(t, objects, "Secret", o.TLSSecret)
			}
			find(t, objects, "Lease", o.LeaseName)
			find(t, objects, "Deployment", o.DeploymentName)
			find(t, objects, "ConfigMap", serve.CAConfigMap)
			service := convert[corev1.Service](t, find(t, objects, "Service", o.ServiceName))
			if got := service.Spec.Ports[0].Port; !strings.HasSuffix(o.Address, ":8443") || got != 443 {
				t.Errorf("it listens at %s and is called at port %d", o.Address, got)
			}
			hosts := o.ServedHosts(rendered.Namespace)
			if !slices.Contains(hosts, "plumbline-api."+rendered.Namespace+".svc") || slices.Contains(hosts, "plumbline.example.com:8443") != (name == "with hosts") {
				t.Errorf("it serves %v", hosts)
			}
			grace := time.Duration(*d.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
			if left := grace - o.DrainDelay; left < 20*time.Second {
				t.Errorf("after the drain %s are left of the grace period for requests to end", left)
			}
			hasMount(t, d, o.Browsers.SessionKeysFile, name == "with browsers" || name == "with an issuer")
			hasMount(t, d, o.Browsers.OIDCClientSecretFile, name == "with an issuer")
			hasMount(t, d, o.Browsers.OIDCCAFile, name == "with an issuer")
			find(t, objects, "PodDisruptionBudget", "plumbline-api")
			find(t, objects, "NetworkPolicy", "plumbline-api")
		})
	}
}

// hasMount demands that a file of an argument is one of a Secret, or that there is no argument.
func hasMount(t *testing.T, d *appsv1.Deployment, file string, wanted bool) {
	t.Helper()
	if (file != "") != wanted {
		t.Errorf("the argument %q is there: %v", file, !wanted)
	}
	if file == "" {
		return
	}
	pod := d.Spec.Template.Spec
	for _, mount := range pod.Containers[0].VolumeMounts {
		if mount.MountPath != filepath.Dir(file) {
			continue
		}
		for _, volume := range pod.Volumes {
			if volume.Name == mount.Name && mount.ReadOnly && volume.Secret != nil && volume.Secret.Items[0].Path == filepath.Base(file) {
				return
			}
		}
	}
	t.Errorf("no Secret is mounted at %s", file)
}
