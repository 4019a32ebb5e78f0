# Builds on the machine's own architecture for whichever is asked for: nothing that is installed is native code.
FROM --platform=$BUILDPLATFORM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-fund --no-audit
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
RUN npm run build
RUN npm ci --omit=dev --ignore-scripts --no-fund --no-audit

# No shell and no npm in here: Node alone, as a user who owns nothing.
FROM gcr.io/distroless/nodejs24-debian12:nonroot
ARG VERSION=unknown
ARG COMMIT=unknown
ARG BUILT=unknown
LABEL org.opencontainers.image.title="model-manager" \
      org.opencontainers.image.description="One live graph over Ollama and its siblings: GraphQL with subscriptions, REST and MCP on one set of resolvers." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}" \
      org.opencontainers.image.created="${BUILT}"
ENV NODE_ENV=production \
    MODEL_MANAGER_COMMIT="${COMMIT}" \
    MODEL_MANAGER_BUILT="${BUILT}"
WORKDIR /app
COPY package.json LICENSE ./
COPY schema ./schema
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/nodejs/bin/node", "--enable-source-maps", "/app/dist/main.js"]
CMD ["serve"]
