package focus

import (
	"cmp"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"io"
	"math/big"
	"strings"
	"time"

	"modelgate"
)

// column is a column of a file.
type column int

// The columns, in their order.
const (
	billingAccountID column = iota
	billingAccountName
	billingCurrency
	billingPeriodStart
	billingPeriodEnd
	chargePeriodStart
	chargePeriodEnd
	chargeCategory
	chargeClass
	chargeDescription
	chargeFrequency
	billedCost
	effectiveCost
	listCost
	contractedCost
	listUnitPrice
	contractedUnitPrice
	consumedQuantity
	consumedUnit
	pricingQuantity
	pricingUnitColumn
	pricingCategory
	invoiceIssuerName
	serviceProviderName
	hostProviderName
	providerName
	publisherName
	serviceName
	serviceCategory
	serviceSubcategory
	regionID
	regionName
	resourceID
	resourceName
	resourceType
	skuID
	skuMeter
	skuPriceID
	skuPriceDetails
	subAccountID
	subAccountName
	tagsColumn
	requestsColumn
	partialRequestsColumn
	columnCount
)

// record is a line, an empty value is null.
type record [columnCount]string

func columnNames() *record {
	return &record{
		"BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart",
		"ChargePeriodEnd", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency", "BilledCost", "EffectiveCost", "ListCost",
		"ContractedCost", "ListUnitPrice", "ContractedUnitPrice", "ConsumedQuantity", "ConsumedUnit", "PricingQuantity", "PricingUnit",
		"PricingCategory", "InvoiceIssuerName", "ServiceProviderName", "HostProviderName", "ProviderName", "PublisherName", "ServiceName",
		"ServiceCategory", "ServiceSubcategory", "RegionId", "RegionName", "ResourceId", "ResourceName", "ResourceType", "SkuId", "SkuMeter",
		"SkuPriceId", "SkuPriceDetails", "SubAccountId", "SubAccountName", "Tags", "x_Requests", "x_PartialRequests",
	}
}

// common is the record with what the lines of a group have in common.
func (e *Export) common(p *period, key groupKey) *record {
	month := time.Date(p.from.Year(), p.from.Month(), 1, 0, 0, 0, 0, time.UTC)
	account := e.Accounts[key.subAccount]
	brand := cmp.Or(e.Brand, e.Organization)
	r := &record{
		billingCurrency: "USD", chargeFrequency: "Usage-Based", serviceCategory: "AI and Machine Learning", serviceSubcategory: "Generative AI",
		billingPeriodStart: stamp(month), billingPeriodEnd: stamp(month.AddDate(0, 1, 0)), chargePeriodStart: stamp(p.from), chargePeriodEnd: stamp(p.to),
		resourceID: cmp.Or(key.slug, key.model), resourceType: "Model", tagsColumn: key.tags,
	}
	r[resourceName] = r[resourceID]
	if e.Model != nil {
		r[resourceName] = cmp.Or(e.Model(key.slug), r[resourceID])
	}
	provider := key.provider
	if e.Provider != nil {
		provider = e.Provider(provider)
	}
	r[billingAccountID], r[billingAccountName], r[invoiceIssuerName] = e.OrganizationID, e.Organization, e.Issuer
	r[subAccountID], r[subAccountName] = string(key.subAccount), account.Name
	r[regionID], r[regionName] = key.region, key.region
	if e.Billed {
		provider = brand
		r[billingAccountID], r[billingAccountName], r[invoiceIssuerName] = string(key.subAccount), account.Name, brand
		r[subAccountID], r[subAccountName] = "", ""
	}
	r[serviceProviderName], r[hostProviderName], r[providerName] = provider, provider, provider
	r[publisherName], r[serviceName] = cmp.Or(key.author, provider), provider+" API"
	return r
}

// usage is the record of a line. sku is the last part of SkuId.
func (r *record) usage(u modelgate.Unit, l *line, cost *big.Int, details, sku string) *record {
	made, m := *r, &meters[u]
	price, quanta := decimal(l.price, priceDecimals), big.NewInt(l.quanta)
	made[chargeCategory], made[pricingCategory] = "Usage", "Standard"
	made[chargeDescription] = r[resourceName] + ", " + m.words
	made.costs(cost)
	made[listUnitPrice], made[contractedUnitPrice] = price, price
	made[consumedQuantity], made[consumedUnit] = decimal(quanta, m.decimals), m.consumed
	made[pricingQuantity], made[pricingUnitColumn] = decimal(quanta, priced(u)), pricingUnit(u)
	made[skuID], made[skuMeter], made[skuPriceDetails] = r[resourceID]+"/"+sku, m.name, details
	made[skuPriceID] = made[skuID] + "#" + fingerprint(price, details)
	made[requestsColumn], made[partialRequestsColumn] = count(l.requests), count(l.partial)
	return &made
}

// adjustment is the record of what rounding row by row makes of a group.
func (r *record) adjustment(cost *big.Int) *record {
	made := *r
	made[chargeCategory] = "Adjustment"
	made[chargeDescription] = r[resourceName] + ", rounding of single calls"
	made.costs(cost)
	return &made
}

func (r *record) costs(cost *big.Int) {
	text := decimal(cost, costDecimals)
	r[billedCost], r[effectiveCost], r[listCost], r[contractedCost] = text, text, text, text
}

// fingerprint is 16 hexadecimal digits that stand for the rates that are shown.
func fingerprint(price, details string) string {
	sum := sha256.Sum256([]byte(price + "\n" + details))
	return hex.EncodeToString(sum[:8])
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// table writes records as CSV (RFC 4180).
type table struct{ w *csv.Writer }

func newTable(w io.Writer) *table {
	t := &table{csv.NewWriter(w)}
	t.w.UseCRLF = true
	return t
}

func (t *table) write(r *record) {
	fields := r[:]
	for i, value := range fields {
		fields[i] = harmless(value, column(i))
	}
	_ = t.w.Write(fields) // the error stays for flush
}

// flush passes everything on.
func (t *table) flush() error {
	t.w.Flush()
	return t.w.Error()
}

// harmless keeps spreadsheets from taking a text for a formula. Numbers are as
// they are.
func harmless(value string, c column) string {
	if c >= billedCost && c <= pricingQuantity && c != consumedUnit || value == "" {
		return value
	}
	if strings.ContainsRune("=+-@\t\r", rune(value[0])) {
		return "'" + value
	}
	return value
}
