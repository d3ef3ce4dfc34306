package config

import (
	"slices"

	"modelgate"
	"modelgate/internal/cloudhost"
)

// maxModelRegions bounds the entries of model_regions.
const maxModelRegions = 64

// ModelRegion says where some models of a provider are computed.
type ModelRegion struct {
	// Glob over the provider's own model ids: `*` stands for any characters,
	// `/` included, and `?` for one. Required.
	Model string `yaml:"model"`

	// Where these models are computed, as in `region`. Required.
	Region string `yaml:"region"`
}

// profiles are the prefixes of inference profiles on Amazon Bedrock, which say
// where a call may be computed whatever the host. Where one is before a vendor's name
// that is not known, a call may be computed anywhere.
var profiles = []ModelRegion{
	{"eu.*", "eu"}, {"us.*", "us"}, {"us-gov.*", "us-gov"}, {"apac.*", "apac"}, {"jp.*", "jp"}, {"au.*", "au"}, {"ca.*", "ca"},
	{"global.*", "global"}, {"arn:*", "unknown"},
	{"*.anthropic.*", "unknown"}, {"*.amazon.*", "unknown"}, {"*.meta.*", "unknown"}, {"*.mistral.*", "unknown"}, {"*.cohere.*", "unknown"},
	{"*.deepseek.*", "unknown"}, {"*.openai.*", "unknown"}, {"*.qwen.*", "unknown"}, {"*.twelvelabs.*", "unknown"}, {"*.writer.*", "unknown"},
	{"*.stability.*", "unknown"},
}

// BedrockProfiles are the regions of models that the prefixes of their ids on Amazon
// Bedrock say.
func BedrockProfiles() []ModelRegion { return slices.Clone(profiles) }

// claudePlatform is the service of AWS that computes in the US or anywhere.
const claudePlatform = "aws-external-anthropic"

// checkRegions judges the regions, and fills in what the host says.
func (p *Provider) checkRegions(d *document, path string) {
	d.faultIf(len(p.ModelRegions) > maxModelRegions, path+".model_regions", "must be at most %d", maxModelRegions)
	for i, r := range p.ModelRegions {
		key := element(path+".model_regions", i)
		required(d, key, "model", r.Model)
		required(d, key, "region", r.Region)
		checkGlob(d, key+".model", r.Model)
	}
	host := cloudhost.Of(p.BaseURL)
	service, region, known := cloudhost.AWS(host)
	if !known {
		region, known = cloudhost.Vertex(host)
	}
	switch {
	case service == claudePlatform:
		if modelgate.InEU(p.Region) {
			d.warn(path+".region", "counts as in the EU, but this service computes in the US or anywhere")
		}
	case known && p.Region == "":
		p.Region = region
	case known:
		d.faultIf(modelgate.InEU(p.Region) != modelgate.InEU(region), path+".region", "contradicts base_url, whose host is in %s", region)
	}
	if service == "bedrock" || p.Format == "bedrock" {
		p.ModelRegions = append(p.ModelRegions, profiles...)
	}
}

// regionOf is where a model is computed.
func (p *Provider) regionOf(model string) string {
	return modelgate.RegionOf(p.RegionsOfModels(), model, p.Region)
}

// RegionsOfModels are ModelRegions in the words of the glossary.
func (p *Provider) RegionsOfModels() []modelgate.ModelRegion {
	list := make([]modelgate.ModelRegion, len(p.ModelRegions))
	for i, r := range p.ModelRegions {
		list[i] = modelgate.ModelRegion(r)
	}
	return list
}
