// SPDX-License-Identifier: Apache-2.0

// Package bucket opens the evidence store that a URL names, and keeps evidence
// in S3 and what speaks its protocol.
//
//	file:///var/lib/plumbline/evidence
//	s3://name?region=eu-central-1
//	s3://name?region=us-east-1&endpoint=https://minio.example.com&use_path_style=true&prefix=plumbline/
//
// A directory is handed to package volume. A bucket goes through gocloud.dev,
// whose other parameters for S3 work too; credentials come from where the AWS
// SDK looks for them.
//
// A record is created with the condition that its name is free (If-None-Match),
// which S3 has had since 2024. A server that ignores the condition would let a
// second writer replace a record unseen. So Ready tries it, and a store that
// does not refuse is not ready.
//
// A proxy may answer in the place of the server. So what was written is read again, and an
// answer that is a page, or no list, is a failure.
//
// Adapter. It uses the network.
package bucket
