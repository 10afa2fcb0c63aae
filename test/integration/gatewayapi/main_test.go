// SPDX-License-Identifier: Apache-2.0

//go:build integration

package gatewayapi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

const (
	// tenant is the namespace of the routes.
	tenant = "shop"
	// server is the user name of the discovery server.
	server = "system:serviceaccount:plumbline-system:plumbline-xds"
	// free is a version of each kind whose schema refuses no value, so that the policy alone does.
	free = "v9"
	// patience bounds every wait.
	patience = 30 * time.Second
)

var (
	config *rest.Config
	admin  client.Client
	// xds acts as the discovery server does.
	xds client.Client
	// subject is the account of the discovery server, and routesRole the role that permits the change of routes.
	subject    = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "plumbline-xds", Namespace: "plumbline-system"}
	routesRole = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "plumbline-xds-routes"}
	// kinds have their schema by name.
	kinds = map[string]*apiextensionsv1.JSONSchemaProps{}
)

func TestMain(m *testing.M) {
	definitions, err := readKinds()
	if err != nil {
		fmt.Fprintln(os.Stderr, "reading the kinds:", err)
		os.Exit(1)
	}
	os.Exit(apiserver.Main(m, func(of *rest.Config, c client.Client) {
		config, admin = of, c
		if err := install(); err != nil {
			fmt.Fprintln(os.Stderr, "installing the chart:", err)
			os.Exit(1)
		}
	}, func(e *envtest.Environment) { e.CRDs = definitions }))
}

// readKinds returns the kinds, each with one more version, which is free.
func readKinds() (all []*apiextensionsv1.CustomResourceDefinition, err error) {
	for _, file := range []string{"httproutes.yaml", "grpcroutes.yaml"} {
		raw, err := os.ReadFile("testdata/" + file)
		if err != nil {
			return nil, err
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, definition); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", file, err)
		}
		version := *definition.Spec.Versions[0].DeepCopy()
		version.Name, version.Storage = free, false
		loosen(version.Schema.OpenAPIV3Schema)
		definition.Spec.Versions = append(definition.Spec.Versions, version)
		kinds[definition.Spec.Names.Kind] = version.Schema.OpenAPIV3Schema
		all = append(all, definition)
	}
	return all, nil
}

func install() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	helm, err := rendered.Find(ctx)
	if err != nil {
		return err
	}
	if err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}}); err != nil {
		return err
	}
	objects, err := apiserver.Render(ctx, helm, "--set", "mesh.enabled=true", "--set", "routers.gatewayAPI.enabled=true", "--set", "routers.gatewayAPI.namespaces={"+tenant+"}")
	if err != nil {
		return err
	}
	if err := apiserver.Install(ctx, admin, objects); err != nil {
		return err
	}
	if err := apiserver.AwaitPolicies(ctx, admin, patience); err != nil {
		return err
	}
	bound := apiserver.AwaitBound(ctx, admin, subject, tenant, routesRole)
	xds, err = apiserver.As(config, server)
	return errors.Join(bound, err)
}
