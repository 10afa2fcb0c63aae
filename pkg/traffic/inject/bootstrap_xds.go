// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"net/netip"
	"path"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	credentialv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/credential_injector/v3"
	codecv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/upstream_codec/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	genericv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/injected_credentials/generic/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	upstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// XDSCluster is the name, in every proxy, of the cluster of the control plane.
const XDSCluster = "plumbline-xds"

// Files in the directory. The two sources are what Envoy reads to know that it is to
// watch the other two: a secret in the bootstrap itself would be read once.
const (
	tokenFile   = "token"
	caFile      = "ca.crt"
	tokenSource = "token.json"
	caSource    = "ca.json"

	tokenSecret = "token" //nolint:gosec // a name
	caSecret    = "ca"
)

func seconds(n int64) *durationpb.Duration {
	return durationpb.New(time.Duration(n) * time.Second)
}

// dynamicResources: clusters and listeners over one stream. A timeout of 0 is none:
// an Envoy that starts waits for its configuration and opens no listener before,
// neither for the application nor for the startup probe.
func dynamicResources() *bootstrapv3.Bootstrap_DynamicResources {
	source := func() *corev3.ConfigSource {
		return &corev3.ConfigSource{
			ResourceApiVersion:    corev3.ApiVersion_V3,
			InitialFetchTimeout:   seconds(0),
			ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		}
	}
	return &bootstrapv3.Bootstrap_DynamicResources{
		CdsConfig: source(),
		LdsConfig: source(),
		AdsConfig: &corev3.ApiConfigSource{
			ApiType: corev3.ApiConfigSource_DELTA_GRPC, TransportApiVersion: corev3.ApiVersion_V3,
			SetNodeOnFirstMessageOnly: true,
			GrpcServices:              []*corev3.GrpcService{returning(xdsService())},
		},
	}
}

func xdsService() *corev3.GrpcService {
	return &corev3.GrpcService{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
		EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: XDSCluster},
	}}
}

// returning has Envoy come back within two seconds, a random part of them, however long the
// server was away. By default it is 30. The server bounds its work in progress, so it
// takes proxies that return at once.
func returning(s *corev3.GrpcService) *corev3.GrpcService {
	s.GetEnvoyGrpc().RetryPolicy = &corev3.RetryPolicy{RetryBackOff: &corev3.BackoffStrategy{
		BaseInterval: seconds(1), MaxInterval: seconds(2),
	}}
	return s
}

func xdsCluster(c BootstrapConfig, p *packer) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name:                 XDSCluster,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS},
		DnsLookupFamily:      clusterv3.Cluster_ALL,
		ConnectTimeout:       seconds(5),
		LoadAssignment:       endpoint(XDSCluster, c.XDSHost, c.XDSPort),
		TransportSocket: &corev3.TransportSocket{
			Name:       "envoy.transport_sockets.tls",
			ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: p.pack(xdsTLS(c))},
		},
		TypedExtensionProtocolOptions: map[string]*anypb.Any{
			"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": p.pack(xdsHTTP(c, p)),
		},
	}
}

func endpoint(cluster, host string, port uint32) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{
		ClusterName: cluster,
		Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address(host, port)}},
		}}}},
	}
}

func address(host string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

func xdsTLS(c BootstrapConfig) *tlsv3.UpstreamTlsContext {
	nameType, sni := tlsv3.SubjectAltNameMatcher_DNS, c.XDSHost
	if _, err := netip.ParseAddr(c.XDSHost); err == nil {
		// There is no server name for an address (RFC 6066, 3).
		nameType, sni = tlsv3.SubjectAltNameMatcher_IP_ADDRESS, ""
	}
	name := &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: c.XDSHost}}
	return &tlsv3.UpstreamTlsContext{
		Sni: sni,
		CommonTlsContext: &tlsv3.CommonTlsContext{
			AlpnProtocols: []string{"h2"},
			// As a client Envoy goes up to 1.2 unless told otherwise.
			TlsParams: &tlsv3.TlsParameters{
				TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_3, TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3,
			},
			ValidationContextType: &tlsv3.CommonTlsContext_CombinedValidationContext{
				CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
					DefaultValidationContext: &tlsv3.CertificateValidationContext{
						MatchTypedSubjectAltNames: []*tlsv3.SubjectAltNameMatcher{{SanType: nameType, Matcher: name}},
					},
					ValidationContextSdsSecretConfig: secretFrom(c, caSecret, caSource),
				},
			},
		},
	}
}

func secretFrom(c BootstrapConfig, name, file string) *tlsv3.SdsSecretConfig {
	return &tlsv3.SdsSecretConfig{Name: name, SdsConfig: &corev3.ConfigSource{
		ResourceApiVersion: corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{
			Path: path.Join(c.Directory, file), WatchedDirectory: &corev3.WatchedDirectory{Path: c.Directory},
		}},
	}}
}

// xdsHTTP finds a dead connection within 35 seconds, and puts the token that is in the
// file at that moment into the headers of each new stream.
func xdsHTTP(c BootstrapConfig, p *packer) *upstreamv3.HttpProtocolOptions {
	generic := &genericv3.Generic{Credential: secretFrom(c, tokenSecret, tokenSource), HeaderValuePrefix: "Bearer "}
	injector := &credentialv3.CredentialInjector{
		Overwrite:  true,
		Credential: &corev3.TypedExtensionConfig{Name: "envoy.http.injected_credentials.generic", TypedConfig: p.pack(generic)},
	}
	return &upstreamv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
					Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
						ConnectionKeepalive: &corev3.KeepaliveSettings{Interval: seconds(30), Timeout: seconds(5)},
					},
				},
			},
		},
		HttpFilters: []*hcmv3.HttpFilter{
			httpFilter("envoy.filters.http.credential_injector", p.pack(injector)),
			httpFilter("envoy.filters.http.upstream_codec", p.pack(&codecv3.UpstreamCodec{})),
		},
	}
}

func httpFilter(name string, config *anypb.Any) *hcmv3.HttpFilter {
	return &hcmv3.HttpFilter{Name: name, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: config}}
}

// SecretFiles are the two files, by name, that have to be in a proxy's directory
// beside the token and the CA bundle. They say nothing secret, only where to look.
func SecretFiles(directory string) (map[string]string, error) {
	watched := &corev3.WatchedDirectory{Path: directory}
	data := func(file string) *corev3.DataSource {
		return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: path.Join(directory, file)}, WatchedDirectory: watched}
	}
	ca := data(caFile)
	ca.WatchedDirectory = nil // the validation context has a field of its own
	files := map[string]string{}
	for name, secret := range map[string]*tlsv3.Secret{
		tokenSource: {Name: tokenSecret, Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{Secret: data(tokenFile)}}},
		caSource: {Name: caSecret, Type: &tlsv3.Secret_ValidationContext{
			ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: ca, WatchedDirectory: watched},
		}},
	} {
		content, err := asResource(secret)
		if err != nil {
			return nil, err
		}
		files[name] = content
	}
	return files, nil
}

func asResource(m proto.Message) (string, error) {
	p := &packer{}
	response := &discoveryv3.DiscoveryResponse{Resources: []*anypb.Any{p.pack(m)}}
	if p.err != nil {
		return "", p.err
	}
	raw, err := encode(response)
	return string(raw), err
}
