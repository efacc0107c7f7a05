package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// InstallCRDs creates custom resource definitions from YAML documents and returns
// once the API server serves them.
func (c *ControlPlane) InstallCRDs(ctx context.Context, documents []byte) error {
	client, err := dynamic.NewForConfig(c.Config(Admin))
	if err != nil {
		return err
	}
	var names []string
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(documents), 4096); ; {
		var crd unstructured.Unstructured
		err := decoder.Decode(&crd.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("install CRDs: %w", err)
		}
		if len(crd.Object) == 0 {
			continue
		}
		if _, err := client.Resource(definitions).Create(ctx, &crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("install CRD %s: %w", crd.GetName(), err)
		}
		names = append(names, crd.GetName())
	}
	for _, name := range names {
		if err := c.awaitCRD(ctx, client, name); err != nil {
			return err
		}
	}
	return nil
}

// awaitCRD waits until a definition's objects can be listed: that it is established
// is told a moment before.
func (c *ControlPlane) awaitCRD(ctx context.Context, client dynamic.Interface, name string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.o.Ready, fmt.Errorf("it was not served within %v", c.o.Ready))
	defer cancel()
	for {
		crd, err := client.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			_, err = client.Resource(resourceOf(crd)).List(ctx, metav1.ListOptions{Limit: 1})
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for CRD %s: %w: %w", name, context.Cause(ctx), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// resourceOf returns what a definition defines, in the version that is stored.
func resourceOf(crd *unstructured.Unstructured) schema.GroupVersionResource {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	r := schema.GroupVersionResource{Group: group, Resource: plural}
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok && version["storage"] == true {
			r.Version, _ = version["name"].(string)
		}
	}
	return r
}
