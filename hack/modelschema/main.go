// SPDX-License-Identifier: Apache-2.0

// Command modelschema prints the OpenAPI definitions of the API types as a
// Swagger 2.0 document. applyconfiguration-gen reads it, so that the generated
// fake clientset knows which lists are maps and can play server-side apply.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"coolops.cn/database-manager/pkg/generated/openapi"
)

func main() {
	if err := json.NewEncoder(os.Stdout).Encode(swagger()); err != nil {
		fmt.Fprintln(os.Stderr, "modelschema: write the OpenAPI document:", err)
		os.Exit(1)
	}
}

// swagger gathers the definitions under the names by which they refer to each
// other. A definition that carries an OpenAPI v2 form of itself gives that one.
func swagger() spec.Swagger {
	defs := openapi.GetOpenAPIDefinitions(func(name string) spec.Ref {
		return spec.MustCreateRef("#/definitions/" + definitionName(name))
	})
	schemas := make(spec.Definitions, len(defs))
	for name, def := range defs {
		schema := def.Schema
		if v2, ok := schema.Extensions[common.ExtensionV2Schema].(spec.Schema); ok {
			schema = v2
		}
		schemas[definitionName(name)] = schema
	}
	return spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger:     "2.0",
		Info:        &spec.Info{InfoProps: spec.InfoProps{Title: "database-manager", Version: "unversioned"}},
		Definitions: schemas,
	}}
}

// definitionName returns the name under which applyconfiguration-gen looks for
// a type. Types of apimachinery have such a name already; ours are given by
// their import path.
func definitionName(name string) string {
	if !strings.Contains(name, "/") {
		return name
	}
	return util.ToRESTFriendlyName(name)
}
